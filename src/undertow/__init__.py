"""Undertow: tensors with automatic differentiation of any order."""

import math
import os
import sys as _sys

if not getattr(_sys, "_is_gil_enabled", lambda: True)():
    # Sums of gradients, versions and who holds memory all rely on one thread at a time.
    raise ImportError(
        "undertow needs the lock of Python's interpreter, which this one runs without; start it "
        "with -X gil=1 or PYTHON_GIL=1, or take a build that has the lock"
    )

# Before NumPy is imported, since its OpenBLAS reads this once; see Note [BLAS threads].
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")

from .compat import stand_in  # first: it finds the modules, under torch's names as well
from . import ops  # it publishes the functions
from . import autograd, backends, dtypes, errors
from .backends.registry import register_backend
from .backends.threads import get_num_threads, set_num_threads
from .core.generator import (
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from .core.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .core.printing import get_printoptions, printoptions, set_printoptions
from .core.register import FUNCTIONS as _functions
from .core.tensor import Tensor
from .devices import device, get_default_device, set_default_device
from .dtypes import *  # noqa: F403
from .dtypes import DType as dtype
from .shapes import Size
from .compat.on_demand import on_demand as _on_demand

__version__ = "0.1.0"

e, inf, nan, newaxis, pi = math.e, math.inf, math.nan, None, math.pi

globals().update(_functions)
# Methods of Tensor that torch has as functions, too.
_methods = """
abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ as_strided_ asin_
asinh_ atan_ atanh_ ceil_ clamp_ clamp_max_ clamp_min_ clip_ conj_physical_ cos_ cosh_ deg2rad_
detach detach_ erf_ erfc_ exp2_ exp_ expm1_ fill_ fix_ floor_ frac_ gcd_ get_device i0_ index_put_
is_conj is_distributed is_neg is_same_size is_signed lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_
nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ resize_as_ round_ rsqrt_ sigmoid_ sin_ sinc_ sinh_
sqrt_ square_ tan_ tanh_ trunc_ xlogy_ zero_
""".split()  # noqa: SIM905
globals().update((_name, getattr(Tensor, _name)) for _name in _methods)

# What is loaded when somebody asks for it, and the room where it stands.
_LAZY = {
    "ao": "ao",
    "array_api": "array_api",
    "distributions": "distributions",
    "draw": "utils.draw",
    "fft": "fft",
    "files": "files",
    "linalg": "linalg",
    "load": "files",
    "masked": "masked",
    "models": "models",
    "nested": "nested",
    "nn": "nn",
    "onnx": "onnx",
    "optim": "optim",
    "quantization": "quantization",
    "save": "files",
    "serialization": "serialization",
    "sparse": "sparse",
    **dict.fromkeys(
        (
            *("sparse_compressed_tensor", "sparse_coo_tensor", "sparse_csc_tensor"),
            *("sparse_bsr_tensor", "sparse_bsc_tensor"),
            *("sparse_csr_tensor", "hspmm", "smm", "sspaddmm"),
        ),
        "sparse",
    ),
    "signal": "signal",
    "special": "special",
    "summary": "utils.summary",
    "timeseries": "timeseries",
    "utils": "utils",
}
# Names where torch has them: probes, settings, mixed precision; by the room where they stand.
_LAZY |= {
    name: room or name
    for room, names in {
        "": """
            __config__ __future__ _C _higher_order_ops accelerator amp compiler cpu cuda distributed
            export func fx hub jit mps multiprocessing opencl overrides profiler quasirandom random
            testing types version webgpu xpu
        """,
        "amp.autocast_mode": """
            autocast clear_autocast_cache get_autocast_cpu_dtype get_autocast_dtype
            get_autocast_gpu_dtype is_autocast_cache_enabled is_autocast_cpu_enabled
            is_autocast_enabled set_autocast_cache_enabled set_autocast_cpu_dtype
            set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled
        """,
        "amp.grad_scaler": "GradScaler",
        "autograd.anomaly": "is_anomaly_check_nan_enabled is_anomaly_enabled set_anomaly_enabled",
        "core.legacy": """
            BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor
            IntTensor LongTensor ShortTensor set_default_tensor_type
        """,
        "core.storage": """
            BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage
            ComplexFloatStorage DoubleStorage FloatStorage HalfStorage IntStorage LongStorage
            ShortStorage TypedStorage UntypedStorage from_file
        """,
        "errors": "OutOfMemoryError",
        "compat._C": "Tag",
        "compiled.function": "compile",
        "_higher_order_ops": "associative_scan cond map scan while_loop",
        "foreach": " ".join(
            [
                "_amp_foreach_non_finite_check_and_unscale_ _amp_update_scale_ _foreach_clone",
                "_foreach_copy_ _foreach_max _foreach_mm _foreach_norm _foreach_powsum",
                "_foreach_zero_",
                *(
                    f"_foreach_{name} _foreach_{name}_"
                    for name in """
                    abs acos add addcdiv addcmul asin atan ceil clamp_max clamp_min cos cosh div erf
                    erfc exp expm1 floor frac lerp lgamma log log10 log1p log2 maximum minimum mul
                    neg pow reciprocal round rsqrt sigmoid sign sin sinh sqrt sub tan tanh trunc
                    """.split()  # noqa: SIM905
                ),
            ]
        ),
        "distributions.gamma_samples": "_sample_dirichlet",
        "func": "vmap",
        "layouts": """
            channels_last channels_last_3d contiguous_format jagged layout legacy_contiguous_format
            memory_format per_channel_affine per_channel_affine_float_qparams per_channel_symmetric
            per_tensor_affine per_tensor_symmetric preserve_format qscheme
            sparse_bsc sparse_bsr sparse_coo sparse_csc sparse_csr strided
        """,
        "private": """
            _assert_async _batch_norm_with_update _cast_Long _chunk_cat
            _log_softmax_backward_data _make_per_tensor_quantized_tensor _native_batch_norm_legit
            _safe_softmax _segment_reduce _shape_as_tensor
            _softmax_backward_data _unique _unique2 _unsafe_index
            _unsafe_masked_index _unsafe_masked_index_put_accumulate _upsample_bicubic2d_aa
            _upsample_bilinear2d_aa
        """,
        "sparse.pointers": "_convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo",
        "sparse.products": "dsmm hsmm saddmm spmm",
        "nn.attention.kernels": """
            _fused_sdp_choice _scaled_dot_product_attention_math
            _scaled_dot_product_cudnn_attention _scaled_dot_product_efficient_attention
            _scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu
        """,
        "ops.linalg.low_precision": """
            _convert_weight_to_int4pack _grouped_mm _int_mm _scaled_grouped_mm _scaled_mm
            _weight_int4pack_mm _weight_int4pack_mm_for_cpu _weight_int8pack_mm embedding_bag
        """,
        "quasirandom": """
            _sobol_engine_draw _sobol_engine_ff_ _sobol_engine_initialize_state_
            _sobol_engine_scramble_
        """,
        "optim.fused": "_fused_adagrad_ _fused_adam_ _fused_adamw_ _fused_sgd_",
        "settings": """
            _assert _check _check_index _check_not_implemented _check_tensor_all
            _check_tensor_all_with _check_type _check_value _check_with
            are_deterministic_algorithms_enabled compiled_with_cxx11_abi
            get_deterministic_debug_mode get_float32_matmul_precision get_num_interop_threads
            is_deterministic_algorithms_warn_only_enabled is_storage is_warn_always_enabled
            set_deterministic_debug_mode set_float32_matmul_precision set_flush_denormal
            set_num_interop_threads set_warn_always typename use_deterministic_algorithms
        """,
    }.items()
    for name in names.split()
}
__getattr__ = _on_demand(globals(), _LAZY)
_rooms = {"core", "devices", "kernel", "layouts", "math", "on_demand", "ops", "os", "shapes"}
_rooms |= {"compat", "stand_in"}
__all__ = sorted(name for name in {*globals(), *_LAZY} - _rooms if not name.startswith("_"))
__dir__ = __all__.copy
