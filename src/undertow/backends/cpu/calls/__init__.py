"""From a form to its kernel: which of NumPy and a kernel, the plan of a layout, the launch."""
