"""Settings of torch's generator of kernels, which can be set and read, and change nothing here."""

from types import SimpleNamespace

from ..patching import patcher

compile_threads = 1
conv_1x1_as_mm = False
coordinate_descent_check_all_directions = False
coordinate_descent_tuning = False
debug = False
emulate_precision_casts = False
epilogue_fusion = True
fallback_random = False
force_disable_caches = False
force_fuse_int_mm_with_mul = False
force_same_precision = False
freezing = False
fx_graph_cache = True
max_autotune = False
max_autotune_gemm = False
max_autotune_gemm_backends = "ATEN,TRITON,CPP"
use_mixed_mm = True
cpp = SimpleNamespace(threads=-1, simdlen=None)
triton = SimpleNamespace(cudagraphs=False, cudagraph_trees=True, unique_kernel_names=True)
patch = patcher(globals())
