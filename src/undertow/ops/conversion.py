"""Dtype, device and Python values: to, item, tolist, numpy, copy_."""
