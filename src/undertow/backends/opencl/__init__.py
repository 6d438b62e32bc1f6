"""`device="opencl"`: any OpenCL device, by the package pyopencl; see docs/opencl.md."""
