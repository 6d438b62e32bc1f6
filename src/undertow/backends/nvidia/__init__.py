"""`device="cuda"`: NVIDIA's cards, by their driver alone; see docs/cuda.md."""
