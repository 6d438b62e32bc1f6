"""From loops to machine code: LLVM IR, compilation, the cache on disk, kernels to call."""
