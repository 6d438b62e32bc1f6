"""Tensors from values and data, to other dtypes and devices, and back to Python."""
