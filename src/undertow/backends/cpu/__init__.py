"""The CPU's own kernels, generated with LLVM; NumPy remains for small arrays and as the oracle."""
