"""The forms of the contract by kernels of the loop IR: each chooses, lays out and launches."""
