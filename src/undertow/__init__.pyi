# Written by tools/stubs.py: run `make stubs` instead of editing it.
"""Undertow: tensors with automatic differentiation of any order."""

import builtins
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

from numpy.typing import NDArray

from . import amp as amp
from . import autograd, backends, dtypes, errors
from . import distributed as distributed
from . import distributions as distributions
from . import files as files
from . import func as func
from . import models as models
from . import nested as nested
from . import nn as nn
from . import onnx as onnx
from . import optim as optim
from . import sparse as sparse
from . import timeseries as timeseries
from . import utils as utils
from .amp.autocast_mode import autocast as autocast
from .amp.autocast_mode import clear_autocast_cache as clear_autocast_cache
from .amp.autocast_mode import get_autocast_cpu_dtype as get_autocast_cpu_dtype
from .amp.autocast_mode import get_autocast_dtype as get_autocast_dtype
from .amp.autocast_mode import get_autocast_gpu_dtype as get_autocast_gpu_dtype
from .amp.autocast_mode import is_autocast_cache_enabled as is_autocast_cache_enabled
from .amp.autocast_mode import is_autocast_cpu_enabled as is_autocast_cpu_enabled
from .amp.autocast_mode import is_autocast_enabled as is_autocast_enabled
from .amp.autocast_mode import set_autocast_cache_enabled as set_autocast_cache_enabled
from .amp.autocast_mode import set_autocast_cpu_dtype as set_autocast_cpu_dtype
from .amp.autocast_mode import set_autocast_cpu_enabled as set_autocast_cpu_enabled
from .amp.autocast_mode import set_autocast_dtype as set_autocast_dtype
from .amp.autocast_mode import set_autocast_enabled as set_autocast_enabled
from .amp.grad_scaler import GradScaler as GradScaler
from .autograd.anomaly import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled
from .autograd.anomaly import is_anomaly_enabled as is_anomaly_enabled
from .autograd.anomaly import set_anomaly_enabled as set_anomaly_enabled
from .backends.registry import register_backend
from .backends.threads import get_num_threads, set_num_threads
from .compat import _C as _C
from .compat import __config__ as __config__
from .compat import __future__ as __future__
from .compat import _higher_order_ops as _higher_order_ops
from .compat import accelerator as accelerator
from .compat import ao as ao
from .compat import array_api as array_api
from .compat import compiler as compiler
from .compat import cpu as cpu
from .compat import cuda as cuda
from .compat import export as export
from .compat import fft as fft
from .compat import fx as fx
from .compat import hub as hub
from .compat import jit as jit
from .compat import linalg as linalg
from .compat import masked as masked
from .compat import mps as mps
from .compat import multiprocessing as multiprocessing
from .compat import opencl as opencl
from .compat import overrides as overrides
from .compat import profiler as profiler
from .compat import quantization as quantization
from .compat import quasirandom as quasirandom
from .compat import random as random
from .compat import serialization as serialization
from .compat import signal as signal
from .compat import special as special
from .compat import testing as testing
from .compat import types as types
from .compat import version as version
from .compat import webgpu as webgpu
from .compat import xpu as xpu
from .compat._C import Tag as Tag
from .compat._higher_order_ops import associative_scan as associative_scan
from .compat._higher_order_ops import cond as cond
from .compat._higher_order_ops import map as map
from .compat._higher_order_ops import scan as scan
from .compat._higher_order_ops import while_loop as while_loop
from .compat.foreach import (
    _amp_foreach_non_finite_check_and_unscale_ as _amp_foreach_non_finite_check_and_unscale_,
)
from .compat.foreach import _amp_update_scale_ as _amp_update_scale_
from .compat.foreach import _foreach_abs as _foreach_abs
from .compat.foreach import _foreach_abs_ as _foreach_abs_
from .compat.foreach import _foreach_acos as _foreach_acos
from .compat.foreach import _foreach_acos_ as _foreach_acos_
from .compat.foreach import _foreach_add as _foreach_add
from .compat.foreach import _foreach_add_ as _foreach_add_
from .compat.foreach import _foreach_addcdiv as _foreach_addcdiv
from .compat.foreach import _foreach_addcdiv_ as _foreach_addcdiv_
from .compat.foreach import _foreach_addcmul as _foreach_addcmul
from .compat.foreach import _foreach_addcmul_ as _foreach_addcmul_
from .compat.foreach import _foreach_asin as _foreach_asin
from .compat.foreach import _foreach_asin_ as _foreach_asin_
from .compat.foreach import _foreach_atan as _foreach_atan
from .compat.foreach import _foreach_atan_ as _foreach_atan_
from .compat.foreach import _foreach_ceil as _foreach_ceil
from .compat.foreach import _foreach_ceil_ as _foreach_ceil_
from .compat.foreach import _foreach_clamp_max as _foreach_clamp_max
from .compat.foreach import _foreach_clamp_max_ as _foreach_clamp_max_
from .compat.foreach import _foreach_clamp_min as _foreach_clamp_min
from .compat.foreach import _foreach_clamp_min_ as _foreach_clamp_min_
from .compat.foreach import _foreach_clone as _foreach_clone
from .compat.foreach import _foreach_copy_ as _foreach_copy_
from .compat.foreach import _foreach_cos as _foreach_cos
from .compat.foreach import _foreach_cos_ as _foreach_cos_
from .compat.foreach import _foreach_cosh as _foreach_cosh
from .compat.foreach import _foreach_cosh_ as _foreach_cosh_
from .compat.foreach import _foreach_div as _foreach_div
from .compat.foreach import _foreach_div_ as _foreach_div_
from .compat.foreach import _foreach_erf as _foreach_erf
from .compat.foreach import _foreach_erf_ as _foreach_erf_
from .compat.foreach import _foreach_erfc as _foreach_erfc
from .compat.foreach import _foreach_erfc_ as _foreach_erfc_
from .compat.foreach import _foreach_exp as _foreach_exp
from .compat.foreach import _foreach_exp_ as _foreach_exp_
from .compat.foreach import _foreach_expm1 as _foreach_expm1
from .compat.foreach import _foreach_expm1_ as _foreach_expm1_
from .compat.foreach import _foreach_floor as _foreach_floor
from .compat.foreach import _foreach_floor_ as _foreach_floor_
from .compat.foreach import _foreach_frac as _foreach_frac
from .compat.foreach import _foreach_frac_ as _foreach_frac_
from .compat.foreach import _foreach_lerp as _foreach_lerp
from .compat.foreach import _foreach_lerp_ as _foreach_lerp_
from .compat.foreach import _foreach_lgamma as _foreach_lgamma
from .compat.foreach import _foreach_lgamma_ as _foreach_lgamma_
from .compat.foreach import _foreach_log as _foreach_log
from .compat.foreach import _foreach_log1p as _foreach_log1p
from .compat.foreach import _foreach_log1p_ as _foreach_log1p_
from .compat.foreach import _foreach_log2 as _foreach_log2
from .compat.foreach import _foreach_log2_ as _foreach_log2_
from .compat.foreach import _foreach_log10 as _foreach_log10
from .compat.foreach import _foreach_log10_ as _foreach_log10_
from .compat.foreach import _foreach_log_ as _foreach_log_
from .compat.foreach import _foreach_max as _foreach_max
from .compat.foreach import _foreach_maximum as _foreach_maximum
from .compat.foreach import _foreach_maximum_ as _foreach_maximum_
from .compat.foreach import _foreach_minimum as _foreach_minimum
from .compat.foreach import _foreach_minimum_ as _foreach_minimum_
from .compat.foreach import _foreach_mm as _foreach_mm
from .compat.foreach import _foreach_mul as _foreach_mul
from .compat.foreach import _foreach_mul_ as _foreach_mul_
from .compat.foreach import _foreach_neg as _foreach_neg
from .compat.foreach import _foreach_neg_ as _foreach_neg_
from .compat.foreach import _foreach_norm as _foreach_norm
from .compat.foreach import _foreach_pow as _foreach_pow
from .compat.foreach import _foreach_pow_ as _foreach_pow_
from .compat.foreach import _foreach_powsum as _foreach_powsum
from .compat.foreach import _foreach_reciprocal as _foreach_reciprocal
from .compat.foreach import _foreach_reciprocal_ as _foreach_reciprocal_
from .compat.foreach import _foreach_round as _foreach_round
from .compat.foreach import _foreach_round_ as _foreach_round_
from .compat.foreach import _foreach_rsqrt as _foreach_rsqrt
from .compat.foreach import _foreach_rsqrt_ as _foreach_rsqrt_
from .compat.foreach import _foreach_sigmoid as _foreach_sigmoid
from .compat.foreach import _foreach_sigmoid_ as _foreach_sigmoid_
from .compat.foreach import _foreach_sign as _foreach_sign
from .compat.foreach import _foreach_sign_ as _foreach_sign_
from .compat.foreach import _foreach_sin as _foreach_sin
from .compat.foreach import _foreach_sin_ as _foreach_sin_
from .compat.foreach import _foreach_sinh as _foreach_sinh
from .compat.foreach import _foreach_sinh_ as _foreach_sinh_
from .compat.foreach import _foreach_sqrt as _foreach_sqrt
from .compat.foreach import _foreach_sqrt_ as _foreach_sqrt_
from .compat.foreach import _foreach_sub as _foreach_sub
from .compat.foreach import _foreach_sub_ as _foreach_sub_
from .compat.foreach import _foreach_tan as _foreach_tan
from .compat.foreach import _foreach_tan_ as _foreach_tan_
from .compat.foreach import _foreach_tanh as _foreach_tanh
from .compat.foreach import _foreach_tanh_ as _foreach_tanh_
from .compat.foreach import _foreach_trunc as _foreach_trunc
from .compat.foreach import _foreach_trunc_ as _foreach_trunc_
from .compat.foreach import _foreach_zero_ as _foreach_zero_
from .compat.private import _assert_async as _assert_async
from .compat.private import _batch_norm_with_update as _batch_norm_with_update
from .compat.private import _cast_Long as _cast_Long
from .compat.private import _chunk_cat as _chunk_cat
from .compat.private import _log_softmax_backward_data as _log_softmax_backward_data
from .compat.private import _make_per_tensor_quantized_tensor as _make_per_tensor_quantized_tensor
from .compat.private import _native_batch_norm_legit as _native_batch_norm_legit
from .compat.private import _safe_softmax as _safe_softmax
from .compat.private import _segment_reduce as _segment_reduce
from .compat.private import _shape_as_tensor as _shape_as_tensor
from .compat.private import _softmax_backward_data as _softmax_backward_data
from .compat.private import _unique as _unique
from .compat.private import _unique2 as _unique2
from .compat.private import _unsafe_index as _unsafe_index
from .compat.private import _unsafe_masked_index as _unsafe_masked_index
from .compat.private import (
    _unsafe_masked_index_put_accumulate as _unsafe_masked_index_put_accumulate,
)
from .compat.private import _upsample_bicubic2d_aa as _upsample_bicubic2d_aa
from .compat.private import _upsample_bilinear2d_aa as _upsample_bilinear2d_aa
from .compat.quasirandom import _sobol_engine_draw as _sobol_engine_draw
from .compat.quasirandom import _sobol_engine_ff_ as _sobol_engine_ff_
from .compat.quasirandom import _sobol_engine_initialize_state_ as _sobol_engine_initialize_state_
from .compat.quasirandom import _sobol_engine_scramble_ as _sobol_engine_scramble_
from .compat.settings import _assert as _assert
from .compat.settings import _check as _check
from .compat.settings import _check_index as _check_index
from .compat.settings import _check_not_implemented as _check_not_implemented
from .compat.settings import _check_tensor_all as _check_tensor_all
from .compat.settings import _check_tensor_all_with as _check_tensor_all_with
from .compat.settings import _check_type as _check_type
from .compat.settings import _check_value as _check_value
from .compat.settings import _check_with as _check_with
from .compat.settings import (
    are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled,
)
from .compat.settings import compiled_with_cxx11_abi as compiled_with_cxx11_abi
from .compat.settings import get_deterministic_debug_mode as get_deterministic_debug_mode
from .compat.settings import get_float32_matmul_precision as get_float32_matmul_precision
from .compat.settings import get_num_interop_threads as get_num_interop_threads
from .compat.settings import (
    is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled,
)
from .compat.settings import is_storage as is_storage
from .compat.settings import is_warn_always_enabled as is_warn_always_enabled
from .compat.settings import set_deterministic_debug_mode as set_deterministic_debug_mode
from .compat.settings import set_float32_matmul_precision as set_float32_matmul_precision
from .compat.settings import set_flush_denormal as set_flush_denormal
from .compat.settings import set_num_interop_threads as set_num_interop_threads
from .compat.settings import set_warn_always as set_warn_always
from .compat.settings import typename as typename
from .compat.settings import use_deterministic_algorithms as use_deterministic_algorithms
from .compiled.function import compile as compile
from .core.generator import (
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from .core.legacy import BFloat16Tensor as BFloat16Tensor
from .core.legacy import BoolTensor as BoolTensor
from .core.legacy import ByteTensor as ByteTensor
from .core.legacy import CharTensor as CharTensor
from .core.legacy import DoubleTensor as DoubleTensor
from .core.legacy import FloatTensor as FloatTensor
from .core.legacy import HalfTensor as HalfTensor
from .core.legacy import IntTensor as IntTensor
from .core.legacy import LongTensor as LongTensor
from .core.legacy import ShortTensor as ShortTensor
from .core.legacy import set_default_tensor_type as set_default_tensor_type
from .core.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .core.printing import get_printoptions, printoptions, set_printoptions
from .core.storage import BFloat16Storage as BFloat16Storage
from .core.storage import BoolStorage as BoolStorage
from .core.storage import ByteStorage as ByteStorage
from .core.storage import CharStorage as CharStorage
from .core.storage import ComplexDoubleStorage as ComplexDoubleStorage
from .core.storage import ComplexFloatStorage as ComplexFloatStorage
from .core.storage import DoubleStorage as DoubleStorage
from .core.storage import FloatStorage as FloatStorage
from .core.storage import HalfStorage as HalfStorage
from .core.storage import IntStorage as IntStorage
from .core.storage import LongStorage as LongStorage
from .core.storage import ShortStorage as ShortStorage
from .core.storage import TypedStorage as TypedStorage
from .core.storage import UntypedStorage as UntypedStorage
from .core.storage import from_file as from_file
from .core.tensor import Tensor
from .devices import DeviceLike, device, get_default_device, set_default_device
from .distributions.gamma_samples import _sample_dirichlet as _sample_dirichlet
from .dtypes import (
    DType,
    DTypeLike,
    Number,
    bfloat16,
    bit,
    bits1x8,
    bits2x4,
    bits4x2,
    bits8,
    bits16,
    bool,
    can_cast,
    cdouble,
    cfloat,
    chalf,
    complex32,
    complex64,
    complex128,
    double,
    finfo,
    float,
    float4_e2m1fn_x2,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    get_default_dtype,
    half,
    iinfo,
    int,
    int1,
    int2,
    int3,
    int4,
    int5,
    int6,
    int7,
    int8,
    int16,
    int32,
    int64,
    long,
    promote_types,
    qint8,
    qint32,
    quint2x4,
    quint4x2,
    quint8,
    set_default_dtype,
    short,
    uint1,
    uint2,
    uint3,
    uint4,
    uint5,
    uint6,
    uint7,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .dtypes import DType as dtype
from .errors import OutOfMemoryError as OutOfMemoryError
from .files import load as load
from .files import save as save
from .func import vmap as vmap
from .layouts import channels_last as channels_last
from .layouts import channels_last_3d as channels_last_3d
from .layouts import contiguous_format as contiguous_format
from .layouts import jagged as jagged
from .layouts import layout as layout
from .layouts import legacy_contiguous_format as legacy_contiguous_format
from .layouts import memory_format as memory_format
from .layouts import per_channel_affine as per_channel_affine
from .layouts import per_channel_affine_float_qparams as per_channel_affine_float_qparams
from .layouts import per_channel_symmetric as per_channel_symmetric
from .layouts import per_tensor_affine as per_tensor_affine
from .layouts import per_tensor_symmetric as per_tensor_symmetric
from .layouts import preserve_format as preserve_format
from .layouts import qscheme as qscheme
from .layouts import sparse_bsc as sparse_bsc
from .layouts import sparse_bsr as sparse_bsr
from .layouts import sparse_coo as sparse_coo
from .layouts import sparse_csc as sparse_csc
from .layouts import sparse_csr as sparse_csr
from .layouts import strided as strided
from .nn.attention.kernels import _fused_sdp_choice as _fused_sdp_choice
from .nn.attention.kernels import (
    _scaled_dot_product_attention_math as _scaled_dot_product_attention_math,
)
from .nn.attention.kernels import (
    _scaled_dot_product_cudnn_attention as _scaled_dot_product_cudnn_attention,
)
from .nn.attention.kernels import (
    _scaled_dot_product_efficient_attention as _scaled_dot_product_efficient_attention,
)
from .nn.attention.kernels import (
    _scaled_dot_product_flash_attention as _scaled_dot_product_flash_attention,
)
from .nn.attention.kernels import (
    _scaled_dot_product_flash_attention_for_cpu as _scaled_dot_product_flash_attention_for_cpu,
)
from .ops.elementwise.float_parts import Parts
from .ops.linalg.low_precision import _convert_weight_to_int4pack as _convert_weight_to_int4pack
from .ops.linalg.low_precision import _grouped_mm as _grouped_mm
from .ops.linalg.low_precision import _int_mm as _int_mm
from .ops.linalg.low_precision import _scaled_grouped_mm as _scaled_grouped_mm
from .ops.linalg.low_precision import _scaled_mm as _scaled_mm
from .ops.linalg.low_precision import _weight_int4pack_mm as _weight_int4pack_mm
from .ops.linalg.low_precision import _weight_int4pack_mm_for_cpu as _weight_int4pack_mm_for_cpu
from .ops.linalg.low_precision import _weight_int8pack_mm as _weight_int8pack_mm
from .ops.linalg.low_precision import embedding_bag as embedding_bag
from .ops.linalg.orthogonal import QR, Reflections
from .ops.linalg.pivoted import LU, LUFactor, LUFactorInfo
from .ops.linalg.solving import SignLogDet
from .ops.linalg.spectra import OldSVD
from .ops.linalg.triangular import TriangularSolution
from .ops.reduce.histograms import Histogram, Histograms
from .ops.reduce.reduction import MinMax
from .ops.reduce.scan import Selection
from .optim.fused import _fused_adagrad_ as _fused_adagrad_
from .optim.fused import _fused_adam_ as _fused_adam_
from .optim.fused import _fused_adamw_ as _fused_adamw_
from .optim.fused import _fused_sgd_ as _fused_sgd_
from .shapes import Ints, Shape, Size
from .sparse import hspmm as hspmm
from .sparse import smm as smm
from .sparse import sparse_bsc_tensor as sparse_bsc_tensor
from .sparse import sparse_bsr_tensor as sparse_bsr_tensor
from .sparse import sparse_compressed_tensor as sparse_compressed_tensor
from .sparse import sparse_coo_tensor as sparse_coo_tensor
from .sparse import sparse_csc_tensor as sparse_csc_tensor
from .sparse import sparse_csr_tensor as sparse_csr_tensor
from .sparse import sspaddmm as sspaddmm
from .sparse.pointers import _convert_indices_from_coo_to_csr as _convert_indices_from_coo_to_csr
from .sparse.pointers import _convert_indices_from_csr_to_coo as _convert_indices_from_csr_to_coo
from .sparse.products import dsmm as dsmm
from .sparse.products import hsmm as hsmm
from .sparse.products import saddmm as saddmm
from .sparse.products import spmm as spmm
from .utils.draw import draw as draw
from .utils.summary import summary as summary

def tensor(
    data: Any,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """A new tensor with a copy of `data`: numbers, nested lists, arrays or tensors."""

def as_tensor(
    data: Any, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """`data` as a tensor that shares its memory where it can."""

def asarray(
    obj: Any,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    copy: builtins.bool | None = None,
    requires_grad: builtins.bool | None = None,
) -> Tensor:
    """`obj` as a tensor: shared (`copy=False`), copied (`copy=True`), or shared where it can be."""

def from_numpy(ndarray: NDArray[Any]) -> Tensor:
    """A tensor that shares the memory of a NumPy array: writing to one changes the other."""

def frombuffer(
    buffer: Any,
    *,
    dtype: DTypeLike,
    count: builtins.int = -1,
    offset: builtins.int = 0,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """A one-dimensional tensor over the bytes of an object such as a bytearray, which it shares."""

def from_dlpack(
    ext_tensor: Any, *, device: DeviceLike | None = None, copy: builtins.bool | None = None
) -> Tensor:
    """A tensor that shares the memory of another library's CPU tensor (DLPack), or of a capsule."""

def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy in memory of its own that gradients flow through."""

@overload
def zeros(
    *sizes: builtins.int,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Zeros of the given shape."""

@overload
def zeros(
    size: Sequence[builtins.int],
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Zeros of the given shape."""

@overload
def ones(
    *sizes: builtins.int,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Ones of the given shape."""

@overload
def ones(
    size: Sequence[builtins.int],
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Ones of the given shape."""

@overload
def empty(
    *sizes: builtins.int,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
    memory_format: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Memory of the given shape whose elements have any value, until they are set."""

@overload
def empty(
    size: Sequence[builtins.int],
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
    memory_format: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Memory of the given shape whose elements have any value, until they are set."""

def full(
    size: Ints,
    fill_value: Tensor | Number,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """`fill_value` in every element; its type gives the dtype (bool, int64, floating, complex)."""

def scalar_tensor(
    s: Tensor | Number,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """A number as a zero-dimensional tensor of the default dtype, whatever the number's type."""

def zeros_like(
    input: Tensor,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Zeros of the shape, dtype and device of `input`."""

def ones_like(
    input: Tensor,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Ones of the shape, dtype and device of `input`."""

def empty_like(
    input: Tensor,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Memory of the shape, dtype and device of `input`, with any values."""

def full_like(
    input: Tensor,
    fill_value: Tensor | Number,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
    memory_format: Any = None,
) -> Tensor:
    """`fill_value` in the shape, dtype and device of `input`."""

def arange(
    start: Tensor | Number = 0,
    end: Tensor | Number | None = None,
    step: Tensor | Number = 1,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """`start`, `start + step`, … below `end`; int64 when all three are integers."""

def range(
    start: Number,
    end: Number,
    step: Number = 1,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """`start`, `start + step`, … up to `end`, which counts in; floating. Rather use `arange`."""

def linspace(
    start: Tensor | Number,
    end: Tensor | Number,
    steps: builtins.int,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """`steps` evenly spaced numbers from `start` to `end`, both included."""

def logspace(
    start: Tensor | Number,
    end: Tensor | Number,
    steps: builtins.int,
    base: builtins.float = 10.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """`base` to the powers `linspace(start, end, steps)`."""

def eye(
    n: builtins.int,
    m: builtins.int | None = None,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Ones on the diagonal of an n × m matrix (square unless m is given), zeros elsewhere."""

@overload
def where(
    condition: Tensor, *, out: tuple[Tensor, ...] | list[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """`input` where the condition holds, else `other`; of a condition alone, its `nonzero`."""

@overload
def where(
    condition: Tensor, input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """`input` where the condition holds, else `other`; of a condition alone, its `nonzero`."""

def eq(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """`input == other` for each element, as a bool tensor; numbers compare exactly."""

def ne(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """`input != other` for each element, as a bool tensor; numbers compare exactly."""

def lt(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """`input < other` for each element, as a bool tensor; numbers compare exactly."""

def le(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """`input <= other` for each element, as a bool tensor; numbers compare exactly."""

def gt(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """`input > other` for each element, as a bool tensor; numbers compare exactly."""

def ge(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """`input >= other` for each element, as a bool tensor; numbers compare exactly."""

not_equal = ne
less = lt
less_equal = le
greater = gt
greater_equal = ge

def logical_and(
    input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """Whether both elements are true, that is not zero."""

def logical_or(
    input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """Whether at least one of the elements is true, that is not zero."""

def logical_xor(
    input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """Whether exactly one of the elements is true, that is not zero."""

def logical_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether the element is false, that is zero."""

def bitwise_and(
    input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """The bits set in both integers; of booleans, whether both are true."""

def bitwise_or(
    input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """The bits set in at least one integer; of booleans, whether at least one is true."""

def bitwise_xor(
    input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """The bits set in exactly one integer; of booleans, whether exactly one is true."""

def bitwise_left_shift(
    input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """The bits of `input` moved left by `other` places."""

def bitwise_right_shift(
    input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """The bits of `input` moved right by `other` places; the sign stays."""

def bitwise_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """All bits inverted; of booleans, the logical not."""

def isnan(input: Tensor) -> Tensor:
    """Which elements are NaN."""

def isinf(input: Tensor) -> Tensor:
    """Which elements are infinite, of either sign."""

def isfinite(input: Tensor) -> Tensor:
    """Which elements are neither infinite nor NaN."""

def isposinf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Which elements are positive infinity."""

def isneginf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Which elements are negative infinity."""

def isreal(input: Tensor) -> Tensor:
    """Which elements have no imaginary part; of real tensors, all."""

def signbit(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Which elements have their sign bit set: negative numbers and -0.0."""

def isclose(
    input: Tensor,
    other: Tensor,
    rtol: builtins.float = 1e-05,
    atol: builtins.float = 1e-08,
    equal_nan: builtins.bool = False,
) -> Tensor:
    """Which elements differ by at most `atol + rtol * abs(other)`."""

def allclose(
    input: Tensor,
    other: Tensor,
    rtol: builtins.float = 1e-05,
    atol: builtins.float = 1e-08,
    equal_nan: builtins.bool = False,
) -> builtins.bool:
    """Whether all elements differ by at most `atol + rtol * abs(other)`."""

def equal(input: Tensor, other: Tensor) -> builtins.bool:
    """Whether two tensors have the same shape and the same elements."""

def isin(
    elements: Tensor | Number,
    test_elements: Tensor | Number,
    *,
    assume_unique: builtins.bool = False,
    invert: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Which elements occur among the test elements; `assume_unique` is accepted and not needed."""

@overload
def reshape(input: Tensor, *sizes_: builtins.int) -> Tensor:
    """The same elements in another shape: a view where the strides allow it, else a copy."""

@overload
def reshape(input: Tensor, shape: Sequence[builtins.int]) -> Tensor:
    """The same elements in another shape: a view where the strides allow it, else a copy."""

def flatten(input: Tensor, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> Tensor:
    """Dimensions `start_dim` to `end_dim` joined into one."""

def ravel(input: Tensor) -> Tensor:
    """All elements in one contiguous dimension: a view where possible."""

def unflatten(input: Tensor, dim: builtins.int, sizes: Sequence[builtins.int]) -> Tensor:
    """One dimension split into several; one of their sizes may be -1."""

def squeeze(input: Tensor, dim: Ints | None = None) -> Tensor:
    """A view without the dimensions of size 1: all of them, or those in `dim` that have size 1."""

def unsqueeze(input: Tensor, dim: builtins.int) -> Tensor:
    """A view with a new dimension of size 1 at position `dim`."""

@overload
def permute(input: Tensor, *order: builtins.int) -> Tensor:
    """A view with the dimensions in another order."""

@overload
def permute(input: Tensor, dims: Sequence[builtins.int]) -> Tensor:
    """A view with the dimensions in another order."""

def transpose(input: Tensor, dim0: builtins.int, dim1: builtins.int) -> Tensor:
    """A view with two dimensions exchanged."""

def swapaxes(input: Tensor, axis0: builtins.int, axis1: builtins.int) -> Tensor:
    """The same as `transpose`."""

def swapdims(input: Tensor, dim0: builtins.int, dim1: builtins.int) -> Tensor:
    """The same as `transpose`."""

def t(input: Tensor) -> Tensor:
    """A matrix transposed; a vector or zero-dimensional tensor as it is."""

def adjoint(input: Tensor) -> Tensor:
    """The last two dimensions exchanged and, for complex numbers, conjugated."""

def movedim(input: Tensor, source: Ints, destination: Ints) -> Tensor:
    """A view with the dimensions `source` at the positions `destination`, the others in order."""

def moveaxis(input: Tensor, source: Ints, destination: Ints) -> Tensor:
    """The same as `movedim`."""

def broadcast_to(input: Tensor, size: Sequence[builtins.int]) -> Tensor:
    """A view broadcast to `size`; the same as `expand`."""

def narrow(
    input: Tensor, dim: builtins.int, start: builtins.int | Tensor, length: builtins.int
) -> Tensor:
    """A view of `length` positions of dimension `dim` from `start` on."""

def select(input: Tensor, dim: builtins.int, index: builtins.int) -> Tensor:
    """A view of position `index` of dimension `dim`, without that dimension."""

def contiguous(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """The tensor itself if its elements lie in row-major order, else a copy that does."""

def cat(tensors: Sequence[Tensor], dim: builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
    """The tensors one after the other along an existing dimension."""

def concat(
    tensors: Sequence[Tensor], dim: builtins.int = 0, *, out: Tensor | None = None
) -> Tensor:
    """The same as `cat`."""

def concatenate(
    tensors: Sequence[Tensor], dim: builtins.int = 0, *, out: Tensor | None = None
) -> Tensor:
    """The same as `cat`."""

def stack(tensors: Sequence[Tensor], dim: builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors of one shape along a new dimension."""

def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The tensors side by side: along dimension 1, vectors along dimension 0."""

def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The tensors as rows: along dimension 0, with at least two dimensions."""

def row_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The same as `vstack`."""

def dstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The tensors in depth: along dimension 2, with at least three dimensions."""

def column_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Vectors as columns beside each other and beside matrices."""

def block_diag(*tensors: Tensor) -> Tensor:
    """A matrix with the given matrices (vectors are rows) along its diagonal, zeros elsewhere."""

def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinate grids of vectors, as expanded views; 'xy' exchanges the first two dimensions."""

def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of one element of each vector, as rows; of one vector, itself."""

def combinations(
    input: Tensor, r: builtins.int = 2, with_replacement: builtins.bool = False
) -> Tensor:
    """All choices of `r` elements of a vector in order, as rows."""

@overload
def atleast_1d(tensor: Tensor, /) -> Tensor:
    """Views with at least one dimension; of one tensor one, of several a tuple."""

@overload
def atleast_1d(tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]:
    """Views with at least one dimension; of one tensor one, of several a tuple."""

@overload
def atleast_1d(first: Tensor, second: Tensor, /, *others: Tensor) -> tuple[Tensor, ...]:
    """Views with at least one dimension; of one tensor one, of several a tuple."""

@overload
def atleast_2d(tensor: Tensor, /) -> Tensor:
    """Views with at least two dimensions; vectors become rows."""

@overload
def atleast_2d(tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]:
    """Views with at least two dimensions; vectors become rows."""

@overload
def atleast_2d(first: Tensor, second: Tensor, /, *others: Tensor) -> tuple[Tensor, ...]:
    """Views with at least two dimensions; vectors become rows."""

@overload
def atleast_3d(tensor: Tensor, /) -> Tensor:
    """Views with at least three dimensions; a vector becomes (1, n, 1), a matrix (m, n, 1)."""

@overload
def atleast_3d(tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]:
    """Views with at least three dimensions; a vector becomes (1, n, 1), a matrix (m, n, 1)."""

@overload
def atleast_3d(first: Tensor, second: Tensor, /, *others: Tensor) -> tuple[Tensor, ...]:
    """Views with at least three dimensions; a vector becomes (1, n, 1), a matrix (m, n, 1)."""

def broadcast_tensors(*tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Views of all tensors in the shape that they broadcast to."""

def broadcast_shapes(*shapes_: Ints) -> Shape:
    """The shape that all shapes broadcast to."""

def split(
    tensor: Tensor, split_size_or_sections: Ints, dim: builtins.int = 0
) -> tuple[Tensor, ...]:
    """Views of equal size (the last may be smaller), or of the sizes listed, along `dim`."""

def split_with_sizes(
    input: Tensor, split_sizes: Sequence[builtins.int], dim: builtins.int = 0
) -> tuple[Tensor, ...]:
    """Consecutive views of the sizes listed along `dim`, which they must fill."""

def chunk(input: Tensor, chunks: builtins.int, dim: builtins.int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` views of equal size (the last may be smaller) along `dim`."""

def unbind(input: Tensor, dim: builtins.int = 0) -> tuple[Tensor, ...]:
    """Views of every position along `dim`, without that dimension."""

def tensor_split(
    input: Tensor,
    indices_or_sections: Ints | Tensor | None = None,
    dim: builtins.int = 0,
    *,
    indices: Sequence[builtins.int] | Tensor | None = None,
    sections: builtins.int | None = None,
) -> tuple[Tensor, ...]:
    """Views of almost equal size, the first ones larger by one, or views between the indices."""

def hsplit(input: Tensor, indices_or_sections: Ints | Tensor) -> tuple[Tensor, ...]:
    """Views side by side: along dimension 1, of a vector along dimension 0."""

def vsplit(input: Tensor, indices_or_sections: Ints | Tensor) -> tuple[Tensor, ...]:
    """Views of rows: along dimension 0 of at least two."""

def dsplit(input: Tensor, indices_or_sections: Ints | Tensor) -> tuple[Tensor, ...]:
    """Views in depth: along dimension 2 of at least three."""

def cumsum(
    input: Tensor, dim: builtins.int, *, dtype: DTypeLike | None = None, out: Tensor | None = None
) -> Tensor:
    """The running sum along `dim`; integers are summed as int64."""

def cumprod(
    input: Tensor, dim: builtins.int, *, dtype: DTypeLike | None = None, out: Tensor | None = None
) -> Tensor:
    """The running product along `dim`; integers are multiplied as int64."""

def cummax(
    input: Tensor, dim: builtins.int, *, out: tuple[Tensor, ...] | list[Tensor] | None = None
) -> Selection:
    """The running maximum along `dim`, and the index of the last element that attains it."""

def cummin(
    input: Tensor, dim: builtins.int, *, out: tuple[Tensor, ...] | list[Tensor] | None = None
) -> Selection:
    """The running minimum along `dim`, and the index of the last element that attains it."""

def logcumsumexp(input: Tensor, dim: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """`log(cumsum(exp(input)))` along `dim`, without overflow."""

def diff(
    input: Tensor,
    n: builtins.int = 1,
    dim: builtins.int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The n-th difference of neighbours along `dim`; booleans are compared."""

def trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: Number = 1, dim: builtins.int = -1
) -> Tensor:
    """The integral of samples `y` along `dim` by the trapezoid rule, at points `x` or `dx` apart."""

trapz = trapezoid

def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: Number = 1, dim: builtins.int = -1
) -> Tensor:
    """The running integral of samples `y` along `dim` by the trapezoid rule."""

def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself: conjugation is never lazy here."""

def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself: negation is never lazy here."""

def is_tensor(obj: Any) -> builtins.bool:
    """Whether `obj` is a Tensor."""

def is_floating_point(input: Tensor) -> builtins.bool:
    """Whether the dtype of `input` is a floating one."""

def is_complex(input: Tensor) -> builtins.bool:
    """Whether the dtype of `input` is a complex one."""

def is_inference(input: Tensor) -> builtins.bool:
    """Whether `input` was made in `inference_mode`."""

def is_nonzero(input: Tensor) -> builtins.bool:
    """Whether the one element of `input` is not zero."""

def numel(input: Tensor) -> builtins.int:
    """The number of elements of `input`."""

def result_type(*operands: Tensor | Number) -> DType:
    """The dtype that arithmetic between these tensors and numbers gives, by torch's rules."""

def add(
    input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1, out: Tensor | None = None
) -> Tensor:
    """`input + alpha * other`, elementwise."""

def sub(
    input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1, out: Tensor | None = None
) -> Tensor:
    """`input - alpha * other`, elementwise."""

def rsub(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """`other - alpha * input`, elementwise."""

def mul(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """`input * other`, elementwise."""

def neg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`-input`, elementwise."""

def positive(input: Tensor) -> Tensor:
    """`+input`: the tensor itself; bool tensors have no sign and are refused."""

def div(
    input: Tensor | Number,
    other: Tensor | Number,
    *,
    rounding_mode: str | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """`input / other`, elementwise; rounded down ('floor') or towards zero ('trunc') on request."""

def true_divide(
    input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """`input / other`, elementwise; integers give the default floating dtype."""

def floor_divide(
    input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """`input / other` rounded down; integers stay integers."""

def remainder(
    input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """What `floor_divide` leaves over; it has the sign of `other`, as in Python."""

def fmod(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """What division towards zero leaves over; it has the sign of `input`, as in C."""

def reciprocal(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`1 / input`, elementwise."""

def square(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`input * input`, elementwise."""

def sqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The square root of each element; NaN below zero."""

def rsqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`1 / sqrt(input)`, elementwise."""

def pow(input: Tensor | Number, exponent: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """`input ** exponent`, elementwise."""

def float_power(
    input: Tensor | Number, exponent: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """`input ** exponent` in double precision."""

def addcmul(
    input: Tensor | Number,
    tensor1: Tensor | Number,
    tensor2: Tensor | Number,
    *,
    value: Number = 1,
    out: Tensor | None = None,
) -> Tensor:
    """`input + value * tensor1 * tensor2`, elementwise."""

def addcdiv(
    input: Tensor | Number,
    tensor1: Tensor | Number,
    tensor2: Tensor | Number,
    *,
    value: Number = 1,
    out: Tensor | None = None,
) -> Tensor:
    """`input + value * tensor1 / tensor2`, elementwise, of floating tensors."""

def lerp(
    input: Tensor | Number,
    end: Tensor | Number,
    weight: Tensor | Number,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """`input + weight * (end - input)`, elementwise; the weight is a number or a tensor."""

def ldexp(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """`input * 2 ** other`, elementwise."""

subtract = sub
multiply = mul
negative = neg
divide = div

def clamp_min(input: Tensor | Number, min: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The elements, but at least `min`; at the bound the gradient goes to `input`."""

def clamp_max(input: Tensor | Number, max: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The elements, but at most `max`; at the bound the gradient goes to `input`."""

def clamp(
    input: Tensor,
    min: Tensor | Number | None = None,
    max: Tensor | Number | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The elements, but at least `min` and at most `max`, numbers or tensors; `max` wins."""

clip = clamp

def maximum(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The larger element; NaN if either is. Equal elements share the gradient."""

def minimum(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The smaller element; NaN if either is. Equal elements share the gradient."""

def fmax(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The larger element, or the only one that is not NaN; of equal ones, the first."""

def fmin(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The smaller element, or the only one that is not NaN; of equal ones, the first."""

def real(input: Tensor) -> Tensor:
    """A view of the real parts; a real tensor is returned as it is."""

def imag(input: Tensor) -> Tensor:
    """A view of the imaginary parts."""

def conj(input: Tensor) -> Tensor:
    """Complex conjugates, as a copy; a real tensor is returned as it is."""

def view_as_real(input: Tensor) -> Tensor:
    """A view of complex numbers as pairs of real and imaginary part."""

def view_as_complex(input: Tensor) -> Tensor:
    """A view of pairs of real and imaginary part as complex numbers."""

def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers from real and imaginary parts of one floating dtype."""

def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers from absolute values and angles of one floating dtype."""

def angle(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle of complex numbers in radians; of real ones, pi where they are negative, else 0."""

def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex conjugates, as a copy; a real tensor is returned as it is."""

def sign(input: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """-1, 0 or 1 for negative, zero and positive elements; 0 for NaN."""

def abs(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The absolute value of each element; of complex ones, a real tensor."""

def sgn(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`sign`, and for complex elements `input / abs(input)`."""

def copysign(
    input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """The size of `input` with the sign of `other`, also that of -0.0."""

def heaviside(
    input: Tensor | Number, values: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """0 for negative elements, 1 for positive ones, `values` for zeros; not differentiable."""

def floor(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The largest integer that is not above the element."""

def ceil(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smallest integer that is not below the element."""

def trunc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The element without its fraction."""

fix = trunc

def round(input: Tensor, *, decimals: builtins.int = 0, out: Tensor | None = None) -> Tensor:
    """The nearest integer, or multiple of `10 ** -decimals`; halves go to the even neighbour."""

def frac(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The fraction of each element, with its sign."""

def nan_to_num(
    input: Tensor,
    nan: builtins.float | None = None,
    posinf: builtins.float | None = None,
    neginf: builtins.float | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """NaN and infinities replaced, by default by zero and the dtype's largest and smallest number."""

absolute = abs

def exp(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """e to the power of each element."""

def exp2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """2 to the power of each element."""

def expm1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`exp(input) - 1`, accurate also for small elements."""

def log(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The natural logarithm of each element; -inf at zero, NaN below."""

def log2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm to base 2 of each element."""

def log10(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm to base 10 of each element."""

def log1p(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`log(1 + input)`, accurate also for small elements."""

def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`1 / (1 + exp(-input))`, elementwise."""

def sin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sine of each element, in radians."""

def cos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The cosine of each element, in radians."""

def tan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The tangent of each element, in radians."""

def asin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle from -pi/2 to pi/2 whose sine is the element; NaN outside -1 to 1."""

def acos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle from 0 to pi whose cosine is the element; NaN outside -1 to 1."""

def atan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle from -pi/2 to pi/2 whose tangent is the element."""

def sinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic sine of each element."""

def cosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic cosine of each element."""

def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic tangent of each element."""

def asinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The number whose hyperbolic sine is the element."""

def acosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The number from 0 up whose hyperbolic cosine is the element; NaN below 1."""

def atanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The number whose hyperbolic tangent is the element; NaN outside -1 to 1."""

arcsin = asin
arccos = acos
arctan = atan
arcsinh = asinh
arccosh = acosh
arctanh = atanh

def deg2rad(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Degrees in radians."""

def rad2deg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Radians in degrees."""

def atan2(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The angle from -pi to pi of the point (`other`, `input`), in radians."""

arctan2 = atan2

def hypot(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """`sqrt(input**2 + other**2)` without overflow; the gradient at the origin is zero."""

def logaddexp(
    input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """`log(exp(input) + exp(other))` without overflow."""

def logaddexp2(
    input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """`log2(2**input + 2**other)` without overflow."""

def xlogy(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """`input * log(other)`, and 0 where `input` is 0, unless `other` is NaN."""

def logit(input: Tensor, eps: builtins.float | None = None, *, out: Tensor | None = None) -> Tensor:
    """`log(input / (1 - input))`, the inverse of `sigmoid`; `eps` first clamps to eps, 1 - eps."""

def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The error function of each element."""

def erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`1 - erf(input)`, accurate also where it is small."""

def erfinv(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `erf`; infinite at -1 and 1, NaN beyond."""

def lgamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the absolute value of the gamma function."""

def digamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of `lgamma`."""

def polygamma(n: builtins.int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of `digamma` of order `n`; of order 0, `digamma` itself."""

def i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind of order 0."""

def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`sin(pi * input) / (pi * input)`, and 1 at zero."""

def relu_(input: Tensor) -> Tensor:
    """In-place form of `relu`; returns the tensor itself."""

def relu(input: Tensor) -> Tensor:
    """`max(input, 0)`, elementwise; the gradient at zero is zero."""

def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """`leaky_relu` whose slope is a tensor of one element, or of one for each channel (dim 1)."""

def threshold_(input: Tensor, threshold: builtins.float, value: builtins.float) -> Tensor:
    """In-place form of `threshold`; returns the tensor itself."""

def threshold(
    input: Tensor,
    threshold: builtins.float,
    value: builtins.float,
    inplace: builtins.bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The elements above `threshold`, and `value` in place of the others."""

def hardshrink(input: Tensor, lambd: builtins.float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """The elements of size above `lambd`, and zero in place of the others."""

def celu_(input: Tensor, alpha: builtins.float = 1.0) -> Tensor:
    """In-place form of `celu`; returns the tensor itself."""

def celu(input: Tensor, alpha: builtins.float = 1.0, inplace: builtins.bool = False) -> Tensor:
    """The positive elements as they are, `alpha * expm1(input / alpha)` for the others."""

def selu_(input: Tensor) -> Tensor:
    """In-place form of `selu`; returns the tensor itself."""

def selu(input: Tensor, inplace: builtins.bool = False) -> Tensor:
    """`elu` with the slope and scale of self-normalising networks."""

def fake_quantize_per_tensor_affine(
    input: Tensor,
    scale: builtins.float | Tensor,
    zero_point: builtins.int | Tensor,
    quant_min: builtins.int,
    quant_max: builtins.int,
) -> Tensor:
    """The multiples of `scale` nearest to the elements, from `quant_min` to `quant_max` of them."""

def fake_quantize_per_channel_affine(
    input: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    axis: builtins.int,
    quant_min: builtins.int,
    quant_max: builtins.int,
) -> Tensor:
    """`fake_quantize_per_tensor_affine` with a scale and a zero point for each index of `axis`."""

def frexp(input: Tensor, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> Parts:
    """`input` as mantissa times two to the exponent, the mantissa at least 0.5 and below 1."""

def nextafter(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The next floating number after `input` towards `other`."""

def igamma(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The regularized lower incomplete gamma function P of `input` (a) and `other` (x)."""

def igammac(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The regularized upper incomplete gamma function, 1 - `igamma`, accurate where it is small."""

def mvlgamma(input: Tensor, p: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension `p`."""

def index_put(
    input: Tensor,
    indices: Sequence[Tensor | None],
    values: Tensor,
    accumulate: builtins.bool = False,
) -> Tensor:
    """`input` with `values` written (or added) at `input[indices]`."""

def take(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Elements of `input`, seen as one row, at positions of any shape."""

def put(input: Tensor, index: Tensor, source: Tensor, accumulate: builtins.bool = False) -> Tensor:
    """`input` with the elements of `source` written (or added) at positions in it, seen as a row."""

def repeat_interleave(
    input: Tensor,
    repeats: Ints | Tensor | None = None,
    dim: builtins.int | None = None,
    *,
    output_size: builtins.int | None = None,
) -> Tensor:
    """Each element (or slice along `dim`) several times; of `repeats` alone, the positions."""

def masked_fill(input: Tensor, mask: Tensor, value: Tensor | Number) -> Tensor:
    """`value`, a number or zero-dimensional tensor, where the mask is true, else `input`."""

@overload
def nonzero(
    input: Tensor, *, as_tuple: Literal[False] = False, out: Tensor | None = None
) -> Tensor:
    """The coordinates of the nonzero elements: one row each, or one tensor for each dimension."""

@overload
def nonzero(
    input: Tensor, *, as_tuple: Literal[True], out: tuple[Tensor, ...] | list[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """The coordinates of the nonzero elements: one row each, or one tensor for each dimension."""

@overload
def nonzero(
    input: Tensor,
    *,
    as_tuple: builtins.bool = False,
    out: tuple[Tensor, ...] | list[Tensor] | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The coordinates of the nonzero elements: one row each, or one tensor for each dimension."""

def argwhere(input: Tensor) -> Tensor:
    """The coordinates of the nonzero elements, one row each."""

def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements where the mask, broadcast against `input`, is true, as a vector."""

def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """`input` with the leading elements of `source`, in order, where the mask is true."""

def gcd(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The greatest common divisor; that of 0 and 0 is 0."""

def lcm(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The least common multiple; 0 if one of them is 0."""

def unravel_index(indices: Tensor, shape: Ints) -> tuple[Tensor, ...]:
    """The coordinates, in a tensor of `shape`, of positions that are counted in row-major order."""

def nonzero_static(
    input: Tensor, *, size: builtins.int, fill_value: builtins.int = -1, out: Tensor | None = None
) -> Tensor:
    """`nonzero`, cut off after `size` rows, or filled up to them with rows of `fill_value`."""

def hash_tensor(
    input: Tensor,
    dim: Ints | None = None,
    keepdim: builtins.bool = False,
    *,
    mode: builtins.int = 0,
) -> Tensor:
    """A number (uint64) that tells tensors apart: exclusive or of the bits of all elements."""

def sum(
    input: Tensor,
    dim: Ints | None = None,
    keepdim: builtins.bool = False,
    *,
    dtype: DTypeLike | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The sum over all or some dimensions; integers are summed as int64."""

def mean(
    input: Tensor,
    dim: Ints | None = None,
    keepdim: builtins.bool = False,
    *,
    dtype: DTypeLike | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The mean over all or some dimensions; NaN where there are no elements."""

def prod(
    input: Tensor,
    dim: builtins.int | None = None,
    keepdim: builtins.bool = False,
    *,
    dtype: DTypeLike | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The product over all dimensions or one; integers are multiplied as int64."""

def amax(
    input: Tensor, dim: Ints = (), keepdim: builtins.bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The maximum over all or some dimensions; its gradient is shared evenly between ties."""

def amin(
    input: Tensor, dim: Ints = (), keepdim: builtins.bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The minimum over all or some dimensions; its gradient is shared evenly between ties."""

@overload
def max(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The maximum: of all elements, along a dim with its indices, or of two tensors."""

@overload
def max(
    input: Tensor,
    dim: builtins.int,
    keepdim: builtins.bool = False,
    *,
    out: tuple[Tensor, ...] | list[Tensor] | None = None,
) -> Selection:
    """The maximum: of all elements, along a dim with its indices, or of two tensors."""

@overload
def max(input: Tensor, other: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """The maximum: of all elements, along a dim with its indices, or of two tensors."""

@overload
def max(input: Tensor, *, other: Tensor, out: Tensor | None = None) -> Tensor:
    """The maximum: of all elements, along a dim with its indices, or of two tensors."""

@overload
def min(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The minimum: of all elements, along a dim with its indices, or of two tensors."""

@overload
def min(
    input: Tensor,
    dim: builtins.int,
    keepdim: builtins.bool = False,
    *,
    out: tuple[Tensor, ...] | list[Tensor] | None = None,
) -> Selection:
    """The minimum: of all elements, along a dim with its indices, or of two tensors."""

@overload
def min(input: Tensor, other: Tensor, /, *, out: Tensor | None = None) -> Tensor:
    """The minimum: of all elements, along a dim with its indices, or of two tensors."""

@overload
def min(input: Tensor, *, other: Tensor, out: Tensor | None = None) -> Tensor:
    """The minimum: of all elements, along a dim with its indices, or of two tensors."""

def argmax(
    input: Tensor,
    dim: builtins.int | None = None,
    keepdim: builtins.bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The index of the first maximum along `dim`, or in the flattened tensor."""

def argmin(
    input: Tensor,
    dim: builtins.int | None = None,
    keepdim: builtins.bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The index of the first minimum along `dim`, or in the flattened tensor."""

def any(
    input: Tensor,
    dim: Ints | None = None,
    keepdim: builtins.bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Whether some element is nonzero, over all or some dimensions."""

def all(
    input: Tensor,
    dim: Ints | None = None,
    keepdim: builtins.bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Whether every element is nonzero, over all or some dimensions."""

def logsumexp(
    input: Tensor, dim: Ints, keepdim: builtins.bool = False, *, out: Tensor | None = None
) -> Tensor:
    """`log(sum(exp(input)))` over some dimensions, without overflow."""

def nansum(
    input: Tensor,
    dim: Ints | None = None,
    keepdim: builtins.bool = False,
    *,
    dtype: DTypeLike | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The sum over all or some dimensions with NaN taken for zero."""

def nanmean(
    input: Tensor,
    dim: Ints | None = None,
    keepdim: builtins.bool = False,
    *,
    dtype: DTypeLike | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The mean over all or some dimensions of the elements that are not NaN."""

def count_nonzero(input: Tensor, dim: Ints | None = None) -> Tensor:
    """How many elements are nonzero, over all or some dimensions; NaN is nonzero."""

def aminmax(
    input: Tensor,
    *,
    dim: builtins.int | None = None,
    keepdim: builtins.bool = False,
    out: tuple[Tensor, ...] | list[Tensor] | None = None,
) -> MinMax:
    """The minimum and the maximum, of all elements or along a dim."""

def norm(
    input: Tensor,
    p: builtins.float | str | None = "fro",
    dim: Ints | None = None,
    keepdim: builtins.bool = False,
    *,
    dtype: DTypeLike | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The p-norm of the elements over all or some dimensions."""

def dist(input: Tensor, other: Tensor, p: builtins.float = 2) -> Tensor:
    """The p-norm of `input - other`."""

def gather(
    input: Tensor,
    dim: builtins.int,
    index: Tensor,
    *,
    sparse_grad: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Elements picked along `dim`: `out[i][j] = input[i][index[i][j]]` for dim 1."""

def take_along_dim(
    input: Tensor, indices: Tensor, dim: builtins.int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """`gather` with the other dimensions broadcast; without `dim`, from `input` as one row."""

def scatter(
    input: Tensor,
    dim: builtins.int,
    index: Tensor,
    src: Tensor | Number | None = None,
    *,
    value: Number | None = None,
    reduce: str | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """`input` with the elements of `src`, or one value, written where `gather` would read them."""

def scatter_add(
    input: Tensor, dim: builtins.int, index: Tensor, src: Tensor, *, out: Tensor | None = None
) -> Tensor:
    """`input` plus the elements of `src`, each added where `gather` would read it."""

def scatter_reduce(
    input: Tensor,
    dim: builtins.int,
    index: Tensor,
    src: Tensor,
    reduce: str,
    *,
    include_self: builtins.bool = True,
    out: Tensor | None = None,
) -> Tensor:
    """The elements of `src` reduced into the places where `gather` would read them."""

def index_select(
    input: Tensor, dim: builtins.int, index: Tensor, *, out: Tensor | None = None
) -> Tensor:
    """The slices of `input` along `dim` that a vector of positions names."""

def index_add(
    input: Tensor,
    dim: builtins.int,
    index: Tensor,
    source: Tensor,
    *,
    alpha: Number = 1,
    out: Tensor | None = None,
) -> Tensor:
    """`input` with `alpha` times the slices of `source` added to its slices at `index`."""

def index_copy(
    input: Tensor, dim: builtins.int, index: Tensor, source: Tensor, *, out: Tensor | None = None
) -> Tensor:
    """`input` with its slices at `index` replaced by those of `source`."""

def index_fill(input: Tensor, dim: builtins.int, index: Tensor, value: Tensor | Number) -> Tensor:
    """`input` with every element of its slices at `index` replaced by one value."""

def index_reduce(
    input: Tensor,
    dim: builtins.int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: builtins.bool = True,
    out: Tensor | None = None,
) -> Tensor:
    """The slices of `source` reduced (prod, mean, amax, amin) into the slices at `index`."""

def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The matrix product; vectors and batches as in NumPy's `@`, batch dimensions broadcast."""

def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of two matrices."""

def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The products of two batches of matrices of one size."""

def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A matrix times a vector."""

def dot(input: Tensor, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sum of the products of two vectors' elements."""

def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`dot`, with the first vector conjugated if it is complex."""

def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sum of products over the last dimension of both; with a zero-d tensor, the product."""

def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """All products of an element of one vector with an element of the other."""

ger = outer

def addmm(
    input: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    *,
    beta: Number = 1,
    alpha: Number = 1,
    out: Tensor | None = None,
) -> Tensor:
    """`beta * input + alpha * (mat1 @ mat2)` for matrices."""

def addmv(
    input: Tensor,
    mat: Tensor,
    vec: Tensor,
    *,
    beta: Number = 1,
    alpha: Number = 1,
    out: Tensor | None = None,
) -> Tensor:
    """`beta * input + alpha * (mat @ vec)` for a matrix and a vector."""

def baddbmm(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: Number = 1,
    alpha: Number = 1,
    out: Tensor | None = None,
) -> Tensor:
    """`beta * input + alpha * (batch1 @ batch2)` for batches of matrices."""

def addbmm(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: Number = 1,
    alpha: Number = 1,
    out: Tensor | None = None,
) -> Tensor:
    """`beta * input + alpha * (batch1 @ batch2).sum(0)` for batches of matrices."""

def addr(
    input: Tensor,
    vec1: Tensor,
    vec2: Tensor,
    *,
    beta: Number = 1,
    alpha: Number = 1,
    out: Tensor | None = None,
) -> Tensor:
    """`beta * input + alpha * outer(vec1, vec2)`."""

def chain_matmul(*matrices: Tensor | Sequence[Tensor], out: Tensor | None = None) -> Tensor:
    """The product of several matrices, in the order that needs the fewest multiplications."""

def trace(input: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix."""

def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Kronecker product: every element of `input` times all of `other`, as blocks."""

def cross(
    input: Tensor, other: Tensor, dim: builtins.int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The cross product along a dimension of size 3, by default the first such one."""

def cdist(
    x1: Tensor,
    x2: Tensor,
    p: builtins.float = 2.0,
    compute_mode: str | builtins.int | None = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:
    """The p-distances between the rows of `x1` and the rows of `x2`, batches broadcast."""

@overload
def einsum(equation: str, /, *operands: Tensor | Sequence[Tensor]) -> Tensor:
    """A sum of products, by an equation over the operands' dimensions."""

@overload
def einsum(operand: Tensor, /, *dimensions_and_operands: Tensor | Sequence[Any]) -> Tensor:
    """A sum of products, by an equation over the operands' dimensions."""

def tensordot(
    a: Tensor,
    b: Tensor,
    dims: builtins.int | Tensor | Sequence[Ints] = 2,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The sum of products over the last dims of `a` and the first of `b`, or over listed pairs."""

@overload
def rand(
    *sizes: builtins.int,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Uniform random numbers in [0, 1)."""

@overload
def rand(
    size: Sequence[builtins.int],
    *,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Uniform random numbers in [0, 1)."""

@overload
def randn(
    *sizes: builtins.int,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Normal random numbers with mean 0 and variance 1."""

@overload
def randn(
    size: Sequence[builtins.int],
    *,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Normal random numbers with mean 0 and variance 1."""

def rand_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
    memory_format: Any = None,
) -> Tensor:
    """`rand` with the shape, dtype and device of `input`."""

def randn_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
    memory_format: Any = None,
) -> Tensor:
    """`randn` with the shape, dtype and device of `input`."""

@overload
def randint(
    high: builtins.int,
    size: Sequence[builtins.int],
    *,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Random integers from `low` (0 unless given) to below `high`."""

@overload
def randint(
    low: builtins.int,
    high: builtins.int,
    size: Sequence[builtins.int],
    *,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Random integers from `low` (0 unless given) to below `high`."""

def randint_like(
    input: Tensor,
    *args: Any,
    low: builtins.int = 0,
    high: builtins.int | None = None,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
    memory_format: Any = None,
) -> Tensor:
    """`randint` with the shape, dtype and device of `input`: `randint_like(input, [low,] high)`."""

def randperm(
    n: builtins.int,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """The integers 0 to n - 1 in random order."""

def normal(
    mean: Tensor | Number = 0.0,
    std: Tensor | Number = 1.0,
    size: Sequence[builtins.int] | None = None,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Normal random numbers of given mean and standard deviation, numbers or tensors."""

def diagonal(
    input: Tensor, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1
) -> Tensor:
    """A view of a diagonal in the plane of two dimensions, as a new last dimension."""

def diag_embed(
    input: Tensor, offset: builtins.int = 0, dim1: builtins.int = -2, dim2: builtins.int = -1
) -> Tensor:
    """Matrices of zeros with the last dimension of `input` on a diagonal."""

def diag(input: Tensor, diagonal: builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
    """A matrix with a vector on its diagonal, or a copy of the diagonal of a matrix."""

def diagflat(input: Tensor, offset: builtins.int = 0) -> Tensor:
    """A matrix with all elements of `input` on its diagonal."""

def tril(input: Tensor, diagonal: builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
    """The lower triangle of matrices up to a diagonal, zeros above it."""

def triu(input: Tensor, diagonal: builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
    """The upper triangle of matrices from a diagonal on, zeros below it."""

def tril_indices(
    row: builtins.int,
    col: builtins.int,
    offset: builtins.int = 0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Row and column numbers of the lower triangle of a `row` by `col` matrix."""

def triu_indices(
    row: builtins.int,
    col: builtins.int,
    offset: builtins.int = 0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Row and column numbers of the upper triangle of a `row` by `col` matrix."""

def triangular_solve(
    input: Tensor,
    A: Tensor,
    upper: builtins.bool = True,
    transpose: builtins.bool = False,
    unitriangular: builtins.bool = False,
    *,
    out: tuple[Tensor, ...] | list[Tensor] | None = None,
) -> TriangularSolution:
    """X of A X = B, or of Aᵀ X = B, for a triangular A; and a copy of A."""

def cholesky(input: Tensor, upper: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """`linalg.cholesky`."""

def cholesky_solve(
    B: Tensor, L: Tensor, upper: builtins.bool = False, *, out: Tensor | None = None
) -> Tensor:
    """X of A X = B, given the Cholesky factor of A."""

def cholesky_inverse(
    L: Tensor, upper: builtins.bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The inverse of a matrix whose Cholesky factor is given."""

def qr(
    input: Tensor,
    some: builtins.bool = True,
    *,
    out: tuple[Tensor, ...] | list[Tensor] | None = None,
) -> QR:
    """`linalg.qr`: reduced, or complete with `some=False`."""

def geqrf(input: Tensor, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> Reflections:
    """LAPACK's packed QR: R, the reflections' vectors below its diagonal, and their factors."""

def orgqr(input: Tensor, input2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`linalg.householder_product`."""

def ormqr(
    input: Tensor,
    tau: Tensor,
    other: Tensor,
    left: builtins.bool = True,
    transpose: builtins.bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The whole Q of `geqrf`'s reflections times a matrix: Q C, or C Q with `left=False`."""

def svd(
    input: Tensor,
    some: builtins.bool = True,
    compute_uv: builtins.bool = True,
    *,
    out: tuple[Tensor, ...] | list[Tensor] | None = None,
) -> OldSVD:
    """U, S and V of A = U S Vᴴ, full matrices with `some=False`; U and V zero if not wanted."""

def lobpcg(
    A: Tensor,
    k: builtins.int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: builtins.int | None = None,
    iK: Tensor | None = None,
    niter: builtins.int | None = None,
    tol: builtins.float | None = None,
    largest: builtins.bool | None = None,
    method: str | None = None,
    tracker: Callable[..., None] | None = None,
    ortho_iparams: dict[str, builtins.int] | None = None,
    ortho_fparams: dict[str, builtins.float] | None = None,
    ortho_bparams: dict[str, builtins.bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """The `k` largest (or smallest) eigenvalues of A x = λ B x, A symmetric, and their vectors."""

def svd_lowrank(
    A: Tensor, q: builtins.int | None = 6, niter: builtins.int = 2, M: Tensor | None = None
) -> OldSVD:
    """U, S and V of an approximation of A, or of A - M, of rank `q`, by random projections."""

def pca_lowrank(
    A: Tensor, q: builtins.int | None = None, center: builtins.bool = True, niter: builtins.int = 2
) -> OldSVD:
    """Principal components of the rows of A: `svd_lowrank` of A without its columns' means."""

def inverse(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`linalg.inv`."""

def det(input: Tensor) -> Tensor:
    """`linalg.det`."""

def slogdet(input: Tensor, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> SignLogDet:
    """`linalg.slogdet`."""

def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant: NaN where that is negative, minus infinity at zero."""

def matrix_exp(input: Tensor) -> Tensor:
    """`linalg.matrix_exp`."""

def matrix_power(input: Tensor, n: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """`linalg.matrix_power`."""

def vander(x: Tensor, N: builtins.int | None = None, increasing: builtins.bool = False) -> Tensor:
    """The powers of a vector's elements in rows, descending unless `increasing`."""

def frobenius_norm(
    input: Tensor, dim: Ints, keepdim: builtins.bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The 2-norm of the elements over `dim`."""

def nuclear_norm(
    input: Tensor,
    dim: Ints = (-2, -1),
    keepdim: builtins.bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The sum of a matrix's singular values."""

def norm_except_dim(v: Tensor, pow: builtins.int = 2, dim: builtins.int = 0) -> Tensor:
    """The norm of the elements over all dimensions but one, which are kept; -1: over all of them."""

def pinverse(input: Tensor, rcond: builtins.float = 1e-15) -> Tensor:
    """`linalg.pinv` with a tolerance relative to the largest singular value."""

def lu(
    A: Tensor, pivot: builtins.bool = True, get_infos: builtins.bool = False
) -> LUFactor | LUFactorInfo:
    """`linalg.lu_factor`, or with `get_infos` `linalg.lu_factor_ex`."""

def lu_unpack(
    LU_data: Tensor,
    LU_pivots: Tensor,
    unpack_data: builtins.bool = True,
    unpack_pivots: builtins.bool = True,
    *,
    out: tuple[Tensor, ...] | list[Tensor] | None = None,
) -> LU:
    """P, L and U out of what `linalg.lu_factor` packed; those not asked for have no elements."""

def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`linalg.lu_solve` with its arguments in an older order."""

@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: builtins.bool = False,
    return_indices: Literal[False] = False,
) -> Tensor:
    """The largest element of each window of signals (N, C, L) or (C, L)."""

@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: builtins.bool = False,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]:
    """The largest element of each window of signals (N, C, L) or (C, L)."""

@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: builtins.bool = False,
    return_indices: builtins.bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest element of each window of signals (N, C, L) or (C, L)."""

@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: builtins.bool = False,
    return_indices: Literal[False] = False,
) -> Tensor:
    """The largest element of each window of images (N, C, H, W) or (C, H, W); see `max_pool1d`."""

@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: builtins.bool = False,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]:
    """The largest element of each window of images (N, C, H, W) or (C, H, W); see `max_pool1d`."""

@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: builtins.bool = False,
    return_indices: builtins.bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest element of each window of images (N, C, H, W) or (C, H, W); see `max_pool1d`."""

@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: builtins.bool = False,
    return_indices: Literal[False] = False,
) -> Tensor:
    """The largest element of each window of (N, C, D, H, W) or (C, D, H, W); see `max_pool1d`."""

@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: builtins.bool = False,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]:
    """The largest element of each window of (N, C, D, H, W) or (C, D, H, W); see `max_pool1d`."""

@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: builtins.bool = False,
    return_indices: builtins.bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest element of each window of (N, C, D, H, W) or (C, D, H, W); see `max_pool1d`."""

def avg_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: builtins.bool = False,
    count_include_pad: builtins.bool = True,
) -> Tensor:
    """The mean of each window of signals (N, C, L) or (C, L)."""

def adaptive_avg_pool1d(
    input: Tensor, output_size: builtins.int | Sequence[builtins.int | None] | None
) -> Tensor:
    """The means of `output_size` windows that cover signals (N, C, L) or (C, L)."""

def bernoulli(
    input: Tensor,
    p: builtins.float | None = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Ones with the probabilities in `input`, or with probability `p` in the shape of `input`."""

def multinomial(
    input: Tensor,
    num_samples: builtins.int,
    replacement: builtins.bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Indices drawn with probabilities proportional to the weights in each row of `input`."""

def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Counts with the Poisson rates in `input`."""

def sort(
    input: Tensor,
    dim: builtins.int = -1,
    descending: builtins.bool = False,
    stable: builtins.bool = False,
    *,
    out: tuple[Tensor, ...] | list[Tensor] | None = None,
) -> Selection:
    """The elements in order along `dim`, and their indices; NaN counts as largest."""

def argsort(
    input: Tensor,
    dim: builtins.int = -1,
    descending: builtins.bool = False,
    stable: builtins.bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The indices that put the elements in order along `dim`."""

def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements in order along the first dimension."""

def topk(
    input: Tensor,
    k: builtins.int,
    dim: builtins.int = -1,
    largest: builtins.bool = True,
    sorted: builtins.bool = True,
    *,
    out: tuple[Tensor, ...] | list[Tensor] | None = None,
) -> Selection:
    """The k largest (or smallest) elements along `dim` in order, and their indices."""

def kthvalue(
    input: Tensor,
    k: builtins.int,
    dim: builtins.int = -1,
    keepdim: builtins.bool = False,
    *,
    out: tuple[Tensor, ...] | list[Tensor] | None = None,
) -> Selection:
    """The k-th smallest element along `dim`, counted from 1, and its index."""

@overload
def unique(
    input: Tensor,
    sorted: builtins.bool = True,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    dim: builtins.int | None = None,
) -> Tensor:
    """The distinct elements in order, or the distinct slices along `dim`."""

@overload
def unique(
    input: Tensor,
    sorted: builtins.bool = True,
    return_inverse: Literal[False] = False,
    *,
    return_counts: Literal[True],
    dim: builtins.int | None = None,
) -> tuple[Tensor, Tensor]:
    """The distinct elements in order, or the distinct slices along `dim`."""

@overload
def unique(
    input: Tensor,
    sorted: builtins.bool = True,
    *,
    return_inverse: Literal[True],
    return_counts: Literal[False] = False,
    dim: builtins.int | None = None,
) -> tuple[Tensor, Tensor]:
    """The distinct elements in order, or the distinct slices along `dim`."""

@overload
def unique(
    input: Tensor,
    sorted: builtins.bool = True,
    *,
    return_inverse: Literal[True],
    return_counts: Literal[True],
    dim: builtins.int | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The distinct elements in order, or the distinct slices along `dim`."""

@overload
def unique(
    input: Tensor,
    sorted: builtins.bool = True,
    return_inverse: builtins.bool = False,
    return_counts: builtins.bool = False,
    dim: builtins.int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The distinct elements in order, or the distinct slices along `dim`."""

@overload
def unique_consecutive(
    input: Tensor,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    dim: builtins.int | None = None,
) -> Tensor:
    """The elements, or the slices along `dim`, with all but the first of each run left out."""

@overload
def unique_consecutive(
    input: Tensor,
    return_inverse: Literal[False] = False,
    *,
    return_counts: Literal[True],
    dim: builtins.int | None = None,
) -> tuple[Tensor, Tensor]:
    """The elements, or the slices along `dim`, with all but the first of each run left out."""

@overload
def unique_consecutive(
    input: Tensor,
    *,
    return_inverse: Literal[True],
    return_counts: Literal[False] = False,
    dim: builtins.int | None = None,
) -> tuple[Tensor, Tensor]:
    """The elements, or the slices along `dim`, with all but the first of each run left out."""

@overload
def unique_consecutive(
    input: Tensor,
    *,
    return_inverse: Literal[True],
    return_counts: Literal[True],
    dim: builtins.int | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The elements, or the slices along `dim`, with all but the first of each run left out."""

@overload
def unique_consecutive(
    input: Tensor,
    return_inverse: builtins.bool = False,
    return_counts: builtins.bool = False,
    dim: builtins.int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The elements, or the slices along `dim`, with all but the first of each run left out."""

def searchsorted(
    sorted_sequence: Tensor,
    input: Tensor | Number,
    *,
    out_int32: builtins.bool = False,
    right: builtins.bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Where `input` would be inserted into sorted sequences along their last dimension."""

def bucketize(
    input: Tensor | Number,
    boundaries: Tensor,
    *,
    out_int32: builtins.bool = False,
    right: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Which of the buckets between sorted `boundaries` each element falls into."""

def softmax(
    input: Tensor,
    dim: builtins.int | None = None,
    dtype: DTypeLike | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """`exp(input)` divided by its sum along `dim`; never overflows."""

def log_softmax(
    input: Tensor,
    dim: builtins.int | None = None,
    dtype: DTypeLike | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """`log(softmax(input, dim))`, accurate where the softmax itself would round to zero."""

def renorm(
    input: Tensor,
    p: builtins.float,
    dim: builtins.int,
    maxnorm: builtins.float,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """`input` with each slice along `dim` whose p-norm is above `maxnorm` scaled down to it."""

def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input1ᵀ W input2 + bias` for each matrix W of `weight`, shape (out, in1, in2)."""

def cosine_similarity(
    x1: Tensor, x2: Tensor, dim: builtins.int = 1, eps: builtins.float = 1e-08
) -> Tensor:
    """The cosine of the angle between vectors along `dim`; norms count as at least `eps`."""

def pairwise_distance(
    x1: Tensor,
    x2: Tensor,
    p: builtins.float = 2.0,
    eps: builtins.float = 1e-06,
    keepdim: builtins.bool = False,
) -> Tensor:
    """The p-norm of `x1 - x2 + eps` along the last dimension."""

def pdist(input: Tensor, p: builtins.float = 2) -> Tensor:
    """The p-norm distances of all pairs of rows i < j, in order."""

def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: builtins.int = 1,
    *,
    padding_mode: str = "zeros",
    activation: str | None = None,
) -> Tensor:
    """Correlate signals (N, C, L) or (C, L) with kernels (O, C / groups, K)."""

def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: builtins.int = 1,
    *,
    padding_mode: str = "zeros",
    activation: str | None = None,
) -> Tensor:
    """Correlate images (N, C, H, W) or (C, H, W) with kernels (O, C / groups, kH, kW)."""

def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: builtins.int = 1,
    *,
    padding_mode: str = "zeros",
    activation: str | None = None,
) -> Tensor:
    """Correlate volumes (N, C, D, H, W) or (C, D, H, W) with kernels (O, C / groups, kD, kH, kW)."""

def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: builtins.int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The transpose of `conv1d`: every input element adds the kernel to the output around it."""

def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: builtins.int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The transpose of `conv2d`, with a weight (C, O / groups, kH, kW); see `conv_transpose1d`."""

def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: builtins.int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The transpose of `conv3d`, with a weight (C, O / groups, kD, kH, kW); see `conv_transpose1d`."""

def native_layer_norm(
    input: Tensor,
    normalized_shape: Ints,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: builtins.float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`nn.functional.layer_norm`, the means and one over the standard deviations."""

def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: builtins.int,
    C: builtins.int,
    HxW: builtins.int,
    group: builtins.int,
    eps: builtins.float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`nn.functional.group_norm` of (N, C, …), the means and one over the standard deviations."""

def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: builtins.bool,
    momentum: builtins.float,
    eps: builtins.float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`nn.functional.batch_norm`, and in training the means and one over standard deviations."""

def native_dropout(
    input: Tensor, p: builtins.float, train: builtins.bool | None
) -> tuple[Tensor, Tensor]:
    """`nn.functional.dropout`, and which elements were kept; `train` None is training."""

def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: builtins.float) -> Tensor:
    """The gradient of what `native_dropout` was given, from that of its result."""

def layer_norm(
    input: Tensor,
    normalized_shape: Ints,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: builtins.float = 1e-05,
    cudnn_enable: builtins.bool = True,
) -> Tensor:
    """`nn.functional.layer_norm`."""

def rms_norm(
    input: Tensor,
    normalized_shape: Ints,
    weight: Tensor | None = None,
    eps: builtins.float | None = None,
) -> Tensor:
    """`nn.functional.rms_norm`."""

def group_norm(
    input: Tensor,
    num_groups: builtins.int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: builtins.float = 1e-05,
    cudnn_enabled: builtins.bool = True,
) -> Tensor:
    """`nn.functional.group_norm`."""

def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: builtins.bool,
    momentum: builtins.float,
    eps: builtins.float,
    cudnn_enabled: builtins.bool = True,
) -> Tensor:
    """`nn.functional.batch_norm`, with weight and bias before the running statistics."""

def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: builtins.bool,
    momentum: builtins.float,
    eps: builtins.float,
    cudnn_enabled: builtins.bool = True,
) -> Tensor:
    """`nn.functional.instance_norm`, with weight and bias before the running statistics."""

def dropout(input: Tensor, p: builtins.float, train: builtins.bool) -> Tensor:
    """`nn.functional.dropout`."""

def alpha_dropout(input: Tensor, p: builtins.float, train: builtins.bool) -> Tensor:
    """`nn.functional.alpha_dropout`."""

def feature_alpha_dropout(input: Tensor, p: builtins.float, train: builtins.bool) -> Tensor:
    """`nn.functional.feature_alpha_dropout`."""

def feature_dropout(input: Tensor, p: builtins.float, train: builtins.bool) -> Tensor:
    """Whole channels of (N, C, …) are set to zero: `nn.functional.dropout2d` of any size."""

def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: builtins.int = -1,
    scale_grad_by_freq: builtins.bool = False,
    sparse: builtins.bool = False,
) -> Tensor:
    """`nn.functional.embedding`, with the table first; a negative `padding_idx` is none."""

def adaptive_max_pool1d(input: Tensor, output_size: Ints) -> tuple[Tensor, Tensor]:
    """`nn.functional.adaptive_max_pool1d` with the positions."""

def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: builtins.bool = False,
) -> tuple[Tensor, Tensor]:
    """`nn.functional.max_pool1d` with the positions."""

def affine_grid_generator(
    theta: Tensor, size: Sequence[builtins.int], align_corners: builtins.bool
) -> Tensor:
    """`nn.functional.affine_grid`."""

def constant_pad_nd(input: Tensor, pad: Sequence[builtins.int], value: Number = 0) -> Tensor:
    """`nn.functional.pad` with a constant."""

def grid_sampler(
    input: Tensor,
    grid: Tensor,
    interpolation_mode: builtins.int,
    padding_mode: builtins.int,
    align_corners: builtins.bool,
) -> Tensor:
    """`nn.functional.grid_sample`; modes are numbers, in the order of their names there."""

def grid_sampler_2d(
    input: Tensor,
    grid: Tensor,
    interpolation_mode: builtins.int,
    padding_mode: builtins.int,
    align_corners: builtins.bool,
) -> Tensor:
    """`nn.functional.grid_sample` of images; modes are numbers, in the order of their names there."""

def grid_sampler_3d(
    input: Tensor,
    grid: Tensor,
    interpolation_mode: builtins.int,
    padding_mode: builtins.int,
    align_corners: builtins.bool,
) -> Tensor:
    """`nn.functional.grid_sample` of volumes; modes are numbers, in the order of their names there."""

def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: builtins.bool,
    output_padding: Ints,
    groups: builtins.int,
) -> Tensor:
    """`conv1d`, `conv2d`, `conv3d` or their transposes, by the dimensions of the weight."""

def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: builtins.int = 0,
) -> Tensor:
    """`nn.functional.binary_cross_entropy_with_logits`."""

def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: builtins.float = 0.0,
    reduction: builtins.int = 0,
) -> Tensor:
    """`nn.functional.cosine_embedding_loss`."""

def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: builtins.float = 1.0, reduction: builtins.int = 0
) -> Tensor:
    """`nn.functional.hinge_embedding_loss`."""

def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: builtins.float = 0.0,
    reduction: builtins.int = 0,
) -> Tensor:
    """`nn.functional.margin_ranking_loss`."""

def kl_div(
    input: Tensor, target: Tensor, reduction: builtins.int = 0, *, log_target: builtins.bool = False
) -> Tensor:
    """`nn.functional.kl_div`."""

def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: builtins.bool,
    full: builtins.bool,
    eps: builtins.float,
    reduction: builtins.int,
) -> Tensor:
    """`nn.functional.poisson_nll_loss`."""

def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: builtins.float = 1.0,
    p: builtins.float = 2.0,
    eps: builtins.float = 1e-06,
    swap: builtins.bool = False,
    reduction: builtins.int = 0,
) -> Tensor:
    """`nn.functional.triplet_margin_loss`."""

def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[builtins.int],
    target_lengths: Tensor | Sequence[builtins.int],
    blank: builtins.int = 0,
    reduction: builtins.int = 0,
    zero_infinity: builtins.bool = False,
) -> Tensor:
    """`nn.functional.ctc_loss`."""

def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """One step of an LSTM: the new state and memory, from an input (batch, features) and the old."""

def gru_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """One step of a gated recurrent unit: the new state from an input (batch, features)."""

def rnn_tanh_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """One step of a plain recurrent layer, tanh(w_ih @ x + w_hh @ h + biases)."""

def rnn_relu_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """One step of a plain recurrent layer, relu(w_ih @ x + w_hh @ h + biases)."""

@overload
def lstm(
    input: Tensor,
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: builtins.bool,
    num_layers: builtins.int,
    dropout: builtins.float,
    train: builtins.bool,
    bidirectional: builtins.bool,
    batch_first: builtins.bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """A long short-term memory: states of the last layer, and last states and memories of all."""

@overload
def lstm(
    data: Tensor,
    batch_sizes: Tensor,
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: builtins.bool,
    num_layers: builtins.int,
    dropout: builtins.float,
    train: builtins.bool,
    bidirectional: builtins.bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """A long short-term memory: states of the last layer, and last states and memories of all."""

@overload
def gru(
    input: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: builtins.bool,
    num_layers: builtins.int,
    dropout: builtins.float,
    train: builtins.bool,
    bidirectional: builtins.bool,
    batch_first: builtins.bool,
) -> tuple[Tensor, Tensor]:
    """A network of gated recurrent units: states of the last layer, and last states of all."""

@overload
def gru(
    data: Tensor,
    batch_sizes: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: builtins.bool,
    num_layers: builtins.int,
    dropout: builtins.float,
    train: builtins.bool,
    bidirectional: builtins.bool,
) -> tuple[Tensor, Tensor]:
    """A network of gated recurrent units: states of the last layer, and last states of all."""

@overload
def rnn_tanh(
    input: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: builtins.bool,
    num_layers: builtins.int,
    dropout: builtins.float,
    train: builtins.bool,
    bidirectional: builtins.bool,
    batch_first: builtins.bool,
) -> tuple[Tensor, Tensor]:
    """A plain recurrent network with tanh: states of the last layer, and last states of all."""

@overload
def rnn_tanh(
    data: Tensor,
    batch_sizes: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: builtins.bool,
    num_layers: builtins.int,
    dropout: builtins.float,
    train: builtins.bool,
    bidirectional: builtins.bool,
) -> tuple[Tensor, Tensor]:
    """A plain recurrent network with tanh: states of the last layer, and last states of all."""

@overload
def rnn_relu(
    input: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: builtins.bool,
    num_layers: builtins.int,
    dropout: builtins.float,
    train: builtins.bool,
    bidirectional: builtins.bool,
    batch_first: builtins.bool,
) -> tuple[Tensor, Tensor]:
    """A plain recurrent network with relu: states of the last layer, and last states of all."""

@overload
def rnn_relu(
    data: Tensor,
    batch_sizes: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: builtins.bool,
    num_layers: builtins.int,
    dropout: builtins.float,
    train: builtins.bool,
    bidirectional: builtins.bool,
) -> tuple[Tensor, Tensor]:
    """A plain recurrent network with relu: states of the last layer, and last states of all."""

def pixel_shuffle(input: Tensor, upscale_factor: builtins.int) -> Tensor:
    """(…, C·r², H, W) as (…, C, H·r, W·r): r² channels become the pixels of a block."""

def pixel_unshuffle(input: Tensor, downscale_factor: builtins.int) -> Tensor:
    """(…, C, H·r, W·r) as (…, C·r², H, W): what `pixel_shuffle` undoes."""

def channel_shuffle(input: Tensor, groups: builtins.int) -> Tensor:
    """(N, C, …) with the channels of `groups` groups dealt out by turns."""

native_channel_shuffle = channel_shuffle

def rrelu_(
    input: Tensor,
    lower: builtins.float = 0.125,
    upper: builtins.float = 0.3333333333333333,
    training: builtins.bool = False,
) -> Tensor:
    """In-place form of `rrelu`; returns the tensor itself."""

def rrelu(
    input: Tensor,
    lower: builtins.float = 0.125,
    upper: builtins.float = 0.3333333333333333,
    training: builtins.bool = False,
    inplace: builtins.bool = False,
) -> Tensor:
    """`leaky_relu` whose slope is drawn between `lower` and `upper` for each element."""

def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: builtins.int = 0) -> Tensor:
    """`conv1d` of (time, batch, channels) with a weight (width, channels in, channels out)."""

def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """How many of `count` trials succeed, each with probability `prob`."""

def cov(
    input: Tensor,
    *,
    correction: builtins.int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """The covariance matrix of variables in rows; of one variable, its variance."""

def corrcoef(input: Tensor) -> Tensor:
    """The correlation coefficients of variables in rows: their covariance on a common scale."""

def histogram(
    input: Tensor,
    bins: Tensor | builtins.int,
    *,
    range: Sequence[builtins.float] | None = None,
    weight: Tensor | None = None,
    density: builtins.bool = False,
    out: tuple[Tensor, ...] | list[Tensor] | None = None,
) -> Histogram:
    """How many elements lie between each two edges, or the sum of their weights."""

def histogramdd(
    input: Tensor,
    bins: Any,
    *,
    range: Sequence[builtins.float] | None = None,
    weight: Tensor | None = None,
    density: builtins.bool = False,
) -> Histograms:
    """How many points, whose coordinates are the last dimension, lie in each box of a grid."""

def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: builtins.int = 0,
    unsafe: builtins.bool = False,
    initial: Number | None = None,
) -> Tensor:
    """Reduce runs of elements along `axis`, given by their lengths or by their first positions."""

def var(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: builtins.bool | None = None,
    keepdim: builtins.bool = False,
    *,
    correction: builtins.float | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The variance over all or some dimensions: squared deviations over `n - correction`."""

def std(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: builtins.bool | None = None,
    keepdim: builtins.bool = False,
    *,
    correction: builtins.float | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The standard deviation over all or some dimensions: the root of `var`."""

def var_mean(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: builtins.bool | None = None,
    keepdim: builtins.bool = False,
    *,
    correction: builtins.float | None = None,
) -> tuple[Tensor, Tensor]:
    """The variance and the mean."""

def std_mean(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: builtins.bool | None = None,
    keepdim: builtins.bool = False,
    *,
    correction: builtins.float | None = None,
) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean."""

@overload
def median(
    input: Tensor, dim: None = None, keepdim: builtins.bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The median of all elements, or along a dim with its index; NaN if any element is."""

@overload
def median(
    input: Tensor,
    dim: builtins.int,
    keepdim: builtins.bool = False,
    *,
    out: tuple[Tensor, ...] | list[Tensor] | None = None,
) -> Selection:
    """The median of all elements, or along a dim with its index; NaN if any element is."""

@overload
def nanmedian(
    input: Tensor, dim: None = None, keepdim: builtins.bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The median of the elements that are not NaN, of all or along a dim with its index."""

@overload
def nanmedian(
    input: Tensor,
    dim: builtins.int,
    keepdim: builtins.bool = False,
    *,
    out: tuple[Tensor, ...] | list[Tensor] | None = None,
) -> Selection:
    """The median of the elements that are not NaN, of all or along a dim with its index."""

def mode(
    input: Tensor,
    dim: builtins.int = -1,
    keepdim: builtins.bool = False,
    *,
    out: tuple[Tensor, ...] | list[Tensor] | None = None,
) -> Selection:
    """The most frequent element along `dim` (the smallest of several), and its last index."""

def quantile(
    input: Tensor,
    q: Tensor | builtins.float,
    dim: builtins.int | None = None,
    keepdim: builtins.bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """The q-th quantiles of all elements, or along a dim; NaN if any element is."""

def nanquantile(
    input: Tensor,
    q: Tensor | builtins.float,
    dim: builtins.int | None = None,
    keepdim: builtins.bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """The q-th quantiles of the elements that are not NaN; see `quantile`."""

def histc(
    input: Tensor,
    bins: builtins.int = 100,
    min: builtins.float = 0,
    max: builtins.float = 0,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """How many elements fall into each of `bins` equal intervals from `min` to `max`."""

def bincount(input: Tensor, weights: Tensor | None = None, minlength: builtins.int = 0) -> Tensor:
    """How often each of 0, 1, 2 … occurs, or the sum of the weights of its occurrences."""

def as_strided(
    input: Tensor,
    size: Sequence[builtins.int],
    stride: Sequence[builtins.int],
    storage_offset: builtins.int | None = None,
) -> Tensor:
    """A view of the tensor's memory by sizes, strides and offset in elements of its storage."""

def unsafe_chunk(input: Tensor, chunks: builtins.int, dim: builtins.int = 0) -> tuple[Tensor, ...]:
    """The parts that `chunk` gives, as if they did not share memory."""

def unsafe_split(
    tensor: Tensor, split_size_or_sections: Ints, dim: builtins.int = 0
) -> tuple[Tensor, ...]:
    """The parts that `split` gives, as if they did not share memory."""

def unsafe_split_with_sizes(
    input: Tensor, split_sizes: Sequence[builtins.int], dim: builtins.int = 0
) -> tuple[Tensor, ...]:
    """The parts that `split_with_sizes` gives, as if they did not share memory."""

def alias_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of the view that `alias` gives: it shares no memory with `input`."""

def as_strided_copy(
    input: Tensor,
    size: Sequence[builtins.int],
    stride: Sequence[builtins.int],
    storage_offset: builtins.int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """A copy of the view that `as_strided` gives: it shares no memory with `input`."""

def detach_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of the view that `detach` gives: it shares no memory with `input`."""

def diagonal_copy(
    input: Tensor,
    offset: builtins.int = 0,
    dim1: builtins.int = 0,
    dim2: builtins.int = 1,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """A copy of the view that `diagonal` gives: it shares no memory with `input`."""

def expand_copy(
    input: Tensor, size: Any, *, implicit: builtins.bool = False, out: Tensor | None = None
) -> Tensor:
    """A copy of the view that `expand` gives: it shares no memory with `input`."""

def narrow_copy(
    input: Tensor,
    dim: builtins.int,
    start: builtins.int | Tensor,
    length: builtins.int,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """A copy of the view that `narrow` gives: it shares no memory with `input`."""

@overload
def permute_copy(input: Tensor, *order: builtins.int, out: Tensor | None = None) -> Tensor:
    """A copy of the view that `permute` gives: it shares no memory with `input`."""

@overload
def permute_copy(
    input: Tensor, dims: Sequence[builtins.int], *, out: Tensor | None = None
) -> Tensor:
    """A copy of the view that `permute` gives: it shares no memory with `input`."""

def select_copy(
    input: Tensor, dim: builtins.int, index: builtins.int, *, out: Tensor | None = None
) -> Tensor:
    """A copy of the view that `select` gives: it shares no memory with `input`."""

def slice_copy(
    input: Tensor,
    dim: builtins.int = 0,
    start: builtins.int | None = None,
    end: builtins.int | None = None,
    step: builtins.int = 1,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """A copy of the view that `slice` gives: it shares no memory with `input`."""

def split_copy(
    tensor: Tensor,
    split_size_or_sections: Ints,
    dim: builtins.int = 0,
    *,
    out: tuple[Tensor, ...] | list[Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """A copy of the view that `split` gives: it shares no memory with `input`."""

def split_with_sizes_copy(
    input: Tensor,
    split_sizes: Sequence[builtins.int],
    dim: builtins.int = 0,
    *,
    out: tuple[Tensor, ...] | list[Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """A copy of the view that `split_with_sizes` gives: it shares no memory with `input`."""

def squeeze_copy(input: Tensor, dim: Ints | None = None, *, out: Tensor | None = None) -> Tensor:
    """A copy of the view that `squeeze` gives: it shares no memory with `input`."""

def t_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of the view that `t` gives: it shares no memory with `input`."""

def transpose_copy(
    input: Tensor, dim0: builtins.int, dim1: builtins.int, *, out: Tensor | None = None
) -> Tensor:
    """A copy of the view that `transpose` gives: it shares no memory with `input`."""

def unbind_copy(
    input: Tensor, dim: builtins.int = 0, *, out: tuple[Tensor, ...] | list[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """A copy of the view that `unbind` gives: it shares no memory with `input`."""

def unfold_copy(
    input: Tensor,
    dimension: builtins.int,
    size: builtins.int,
    step: builtins.int,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """A copy of the view that `unfold` gives: it shares no memory with `input`."""

def unsqueeze_copy(input: Tensor, dim: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """A copy of the view that `unsqueeze` gives: it shares no memory with `input`."""

def view_as_complex_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of the view that `view_as_complex` gives: it shares no memory with `input`."""

def view_as_real_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of the view that `view_as_real` gives: it shares no memory with `input`."""

def view_copy(
    input: Tensor, size: Any = None, *, dtype: Any = None, out: Tensor | None = None
) -> Tensor:
    """A copy of the view that `view` gives: it shares no memory with `input`."""

def fill(input: Tensor, value: Any) -> Tensor:
    """A tensor like `input`, every element of which is `value`, a number or a tensor with one."""

def empty_strided(
    size: Ints,
    stride: Ints,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """Memory of the given sizes and strides, in elements, whose elements have any value."""

def empty_permuted(
    size: Ints,
    physical_layout: Ints,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """Memory of the given sizes whose dimensions lie in the given order, the last one closest."""

@overload
def flip(input: Tensor, *order: builtins.int) -> Tensor:
    """A copy with the elements along `dims` in reverse."""

@overload
def flip(input: Tensor, dims: Sequence[builtins.int]) -> Tensor:
    """A copy with the elements along `dims` in reverse."""

def fliplr(input: Tensor) -> Tensor:
    """A copy with the columns (dimension 1) in reverse."""

def flipud(input: Tensor) -> Tensor:
    """A copy with the rows (dimension 0) in reverse."""

def roll(input: Tensor, shifts: Ints, dims: Ints | None = None) -> Tensor:
    """A copy shifted along `dims`; what leaves at the end comes in at the front."""

def rot90(input: Tensor, k: builtins.int = 1, dims: Sequence[builtins.int] = (0, 1)) -> Tensor:
    """A copy rotated `k` times by 90 degrees in the plane of two dims, first to second."""

@overload
def tile(input: Tensor, *times: builtins.int) -> Tensor:
    """A copy repeated along the last dimensions, as `repeat` with missing repeats taken as 1."""

@overload
def tile(input: Tensor, dims: Sequence[builtins.int]) -> Tensor:
    """A copy repeated along the last dimensions, as `repeat` with missing repeats taken as 1."""

def select_scatter(input: Tensor, src: Tensor, dim: builtins.int, index: builtins.int) -> Tensor:
    """A copy with `src` in place of `select(dim, index)`."""

def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: builtins.int = 0,
    start: builtins.int | None = None,
    end: builtins.int | None = None,
    step: builtins.int = 1,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """A copy with `src` in place of the slice `start:end:step` of dimension `dim`."""

def diagonal_scatter(
    input: Tensor,
    src: Tensor,
    offset: builtins.int = 0,
    dim1: builtins.int = 0,
    dim2: builtins.int = 1,
) -> Tensor:
    """A copy with `src` in place of `diagonal(offset, dim1, dim2)`."""

def as_strided_scatter(
    input: Tensor,
    src: Tensor,
    size: Sequence[builtins.int],
    stride: Sequence[builtins.int],
    storage_offset: builtins.int | None = None,
) -> Tensor:
    """A copy with `src` in place of `as_strided(size, stride, storage_offset)`."""

def gradient(
    input: Tensor, *, spacing: Any = 1, dim: Ints | None = None, edge_order: builtins.int = 1
) -> tuple[Tensor, ...]:
    """The slopes along each dimension of values on a grid, by central differences."""

def stft(
    input: Tensor,
    n_fft: builtins.int,
    hop_length: builtins.int | None = None,
    win_length: builtins.int | None = None,
    window: Tensor | None = None,
    center: builtins.bool = True,
    pad_mode: str = "reflect",
    normalized: builtins.bool = False,
    onesided: builtins.bool | None = None,
    return_complex: builtins.bool | None = None,
    align_to_window: builtins.bool | None = None,
) -> Tensor:
    """The short-time Fourier transform: of a signal (time) or a batch of them, (frequency, frame)."""

def istft(
    input: Tensor,
    n_fft: builtins.int,
    hop_length: builtins.int | None = None,
    win_length: builtins.int | None = None,
    window: Tensor | None = None,
    center: builtins.bool = True,
    normalized: builtins.bool = False,
    onesided: builtins.bool | None = None,
    length: builtins.int | None = None,
    return_complex: builtins.bool = False,
) -> Tensor:
    """The signal of which `stft` with the same arguments gives `input`, or the nearest there is."""

def hann_window(
    window_length: builtins.int,
    periodic: builtins.bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """`signal.windows.hann`, periodic by default."""

def blackman_window(
    window_length: builtins.int,
    periodic: builtins.bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """`signal.windows.blackman`, periodic by default."""

def bartlett_window(
    window_length: builtins.int,
    periodic: builtins.bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """`signal.windows.bartlett`, periodic by default."""

def hamming_window(
    window_length: builtins.int,
    periodic: builtins.bool = True,
    alpha: builtins.float = 0.54,
    beta: builtins.float = 0.46,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """`alpha` less `beta` times a cosine, periodic by default."""

def kaiser_window(
    window_length: builtins.int,
    periodic: builtins.bool = True,
    beta: builtins.float = 12.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """`signal.windows.kaiser`, periodic by default."""

__version__: str
abs_ = Tensor.abs_
acos_ = Tensor.acos_
acosh_ = Tensor.acosh_
addmv_ = Tensor.addmv_
arccos_ = Tensor.arccos_
arccosh_ = Tensor.arccosh_
arcsin_ = Tensor.arcsin_
arcsinh_ = Tensor.arcsinh_
arctan_ = Tensor.arctan_
arctanh_ = Tensor.arctanh_
as_strided_ = Tensor.as_strided_
asin_ = Tensor.asin_
asinh_ = Tensor.asinh_
atan_ = Tensor.atan_
atanh_ = Tensor.atanh_
ceil_ = Tensor.ceil_
clamp_ = Tensor.clamp_
clamp_max_ = Tensor.clamp_max_
clamp_min_ = Tensor.clamp_min_
clip_ = Tensor.clip_
conj_physical_ = Tensor.conj_physical_
cos_ = Tensor.cos_
cosh_ = Tensor.cosh_
deg2rad_ = Tensor.deg2rad_
detach = Tensor.detach
detach_ = Tensor.detach_
e: builtins.float
erf_ = Tensor.erf_
erfc_ = Tensor.erfc_
exp2_ = Tensor.exp2_
exp_ = Tensor.exp_
expm1_ = Tensor.expm1_
fill_ = Tensor.fill_
fix_ = Tensor.fix_
floor_ = Tensor.floor_
frac_ = Tensor.frac_
gcd_ = Tensor.gcd_
get_device = Tensor.get_device
i0_ = Tensor.i0_
index_put_ = Tensor.index_put_
inf: builtins.float
is_conj = Tensor.is_conj
is_distributed = Tensor.is_distributed
is_neg = Tensor.is_neg
is_same_size = Tensor.is_same_size
is_signed = Tensor.is_signed
lcm_ = Tensor.lcm_
ldexp_ = Tensor.ldexp_
log10_ = Tensor.log10_
log1p_ = Tensor.log1p_
log2_ = Tensor.log2_
log_ = Tensor.log_
logit_ = Tensor.logit_
nan: builtins.float
nan_to_num_ = Tensor.nan_to_num_
neg_ = Tensor.neg_
negative_ = Tensor.negative_
newaxis: None
pi: builtins.float
rad2deg_ = Tensor.rad2deg_
reciprocal_ = Tensor.reciprocal_
resize_as_ = Tensor.resize_as_
round_ = Tensor.round_
rsqrt_ = Tensor.rsqrt_
sigmoid_ = Tensor.sigmoid_
sin_ = Tensor.sin_
sinc_ = Tensor.sinc_
sinh_ = Tensor.sinh_
sqrt_ = Tensor.sqrt_
square_ = Tensor.square_
tan_ = Tensor.tan_
tanh_ = Tensor.tanh_
trunc_ = Tensor.trunc_
xlogy_ = Tensor.xlogy_
zero_ = Tensor.zero_
__all__ = [
    "BFloat16Storage",
    "BFloat16Tensor",
    "BoolStorage",
    "BoolTensor",
    "ByteStorage",
    "ByteTensor",
    "CharStorage",
    "CharTensor",
    "ComplexDoubleStorage",
    "ComplexFloatStorage",
    "DoubleStorage",
    "DoubleTensor",
    "FloatStorage",
    "FloatTensor",
    "Generator",
    "GradScaler",
    "HalfStorage",
    "HalfTensor",
    "IntStorage",
    "IntTensor",
    "LongStorage",
    "LongTensor",
    "OutOfMemoryError",
    "ShortStorage",
    "ShortTensor",
    "Size",
    "Tag",
    "Tensor",
    "TypedStorage",
    "UntypedStorage",
    "abs",
    "abs_",
    "absolute",
    "accelerator",
    "acos",
    "acos_",
    "acosh",
    "acosh_",
    "adaptive_avg_pool1d",
    "adaptive_max_pool1d",
    "add",
    "addbmm",
    "addcdiv",
    "addcmul",
    "addmm",
    "addmv",
    "addmv_",
    "addr",
    "adjoint",
    "affine_grid_generator",
    "alias_copy",
    "all",
    "allclose",
    "alpha_dropout",
    "amax",
    "amin",
    "aminmax",
    "amp",
    "angle",
    "any",
    "ao",
    "arange",
    "arccos",
    "arccos_",
    "arccosh",
    "arccosh_",
    "arcsin",
    "arcsin_",
    "arcsinh",
    "arcsinh_",
    "arctan",
    "arctan2",
    "arctan_",
    "arctanh",
    "arctanh_",
    "are_deterministic_algorithms_enabled",
    "argmax",
    "argmin",
    "argsort",
    "argwhere",
    "array_api",
    "as_strided",
    "as_strided_",
    "as_strided_copy",
    "as_strided_scatter",
    "as_tensor",
    "asarray",
    "asin",
    "asin_",
    "asinh",
    "asinh_",
    "associative_scan",
    "atan",
    "atan2",
    "atan_",
    "atanh",
    "atanh_",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "autocast",
    "autograd",
    "avg_pool1d",
    "backends",
    "baddbmm",
    "bartlett_window",
    "batch_norm",
    "bernoulli",
    "bfloat16",
    "bilinear",
    "binary_cross_entropy_with_logits",
    "bincount",
    "binomial",
    "bit",
    "bits16",
    "bits1x8",
    "bits2x4",
    "bits4x2",
    "bits8",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "blackman_window",
    "block_diag",
    "bmm",
    "bool",
    "broadcast_shapes",
    "broadcast_tensors",
    "broadcast_to",
    "bucketize",
    "can_cast",
    "cartesian_prod",
    "cat",
    "cdist",
    "cdouble",
    "ceil",
    "ceil_",
    "celu",
    "celu_",
    "cfloat",
    "chain_matmul",
    "chalf",
    "channel_shuffle",
    "channels_last",
    "channels_last_3d",
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "chunk",
    "clamp",
    "clamp_",
    "clamp_max",
    "clamp_max_",
    "clamp_min",
    "clamp_min_",
    "clear_autocast_cache",
    "clip",
    "clip_",
    "clone",
    "column_stack",
    "combinations",
    "compile",
    "compiled_with_cxx11_abi",
    "compiler",
    "complex",
    "complex128",
    "complex32",
    "complex64",
    "concat",
    "concatenate",
    "cond",
    "conj",
    "conj_physical",
    "conj_physical_",
    "constant_pad_nd",
    "contiguous",
    "contiguous_format",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "convolution",
    "copysign",
    "corrcoef",
    "cos",
    "cos_",
    "cosh",
    "cosh_",
    "cosine_embedding_loss",
    "cosine_similarity",
    "count_nonzero",
    "cov",
    "cpu",
    "cross",
    "ctc_loss",
    "cuda",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "cumulative_trapezoid",
    "default_generator",
    "deg2rad",
    "deg2rad_",
    "det",
    "detach",
    "detach_",
    "detach_copy",
    "device",
    "diag",
    "diag_embed",
    "diagflat",
    "diagonal",
    "diagonal_copy",
    "diagonal_scatter",
    "diff",
    "digamma",
    "dist",
    "distributed",
    "distributions",
    "div",
    "divide",
    "dot",
    "double",
    "draw",
    "dropout",
    "dsmm",
    "dsplit",
    "dstack",
    "dtype",
    "dtypes",
    "e",
    "einsum",
    "embedding",
    "embedding_bag",
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "enable_grad",
    "eq",
    "equal",
    "erf",
    "erf_",
    "erfc",
    "erfc_",
    "erfinv",
    "errors",
    "exp",
    "exp2",
    "exp2_",
    "exp_",
    "expand_copy",
    "expm1",
    "expm1_",
    "export",
    "eye",
    "fake_quantize_per_channel_affine",
    "fake_quantize_per_tensor_affine",
    "feature_alpha_dropout",
    "feature_dropout",
    "fft",
    "files",
    "fill",
    "fill_",
    "finfo",
    "fix",
    "fix_",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "float",
    "float16",
    "float32",
    "float4_e2m1fn_x2",
    "float64",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float_power",
    "floor",
    "floor_",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "frac",
    "frac_",
    "frexp",
    "frobenius_norm",
    "from_dlpack",
    "from_file",
    "from_numpy",
    "frombuffer",
    "full",
    "full_like",
    "func",
    "fx",
    "gather",
    "gcd",
    "gcd_",
    "ge",
    "geqrf",
    "ger",
    "get_autocast_cpu_dtype",
    "get_autocast_dtype",
    "get_autocast_gpu_dtype",
    "get_default_device",
    "get_default_dtype",
    "get_deterministic_debug_mode",
    "get_device",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "get_num_threads",
    "get_printoptions",
    "get_rng_state",
    "gradient",
    "greater",
    "greater_equal",
    "grid_sampler",
    "grid_sampler_2d",
    "grid_sampler_3d",
    "group_norm",
    "gru",
    "gru_cell",
    "gt",
    "half",
    "hamming_window",
    "hann_window",
    "hardshrink",
    "hash_tensor",
    "heaviside",
    "hinge_embedding_loss",
    "histc",
    "histogram",
    "histogramdd",
    "hsmm",
    "hsplit",
    "hspmm",
    "hstack",
    "hub",
    "hypot",
    "i0",
    "i0_",
    "igamma",
    "igammac",
    "iinfo",
    "imag",
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "index_put_",
    "index_reduce",
    "index_select",
    "inf",
    "inference_mode",
    "initial_seed",
    "inner",
    "instance_norm",
    "int",
    "int1",
    "int16",
    "int2",
    "int3",
    "int32",
    "int4",
    "int5",
    "int6",
    "int64",
    "int7",
    "int8",
    "inverse",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_autocast_cache_enabled",
    "is_autocast_cpu_enabled",
    "is_autocast_enabled",
    "is_complex",
    "is_conj",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_distributed",
    "is_floating_point",
    "is_grad_enabled",
    "is_inference",
    "is_inference_mode_enabled",
    "is_neg",
    "is_nonzero",
    "is_same_size",
    "is_signed",
    "is_storage",
    "is_tensor",
    "is_warn_always_enabled",
    "isclose",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "istft",
    "jagged",
    "jit",
    "kaiser_window",
    "kl_div",
    "kron",
    "kthvalue",
    "layer_norm",
    "layout",
    "lcm",
    "lcm_",
    "ldexp",
    "ldexp_",
    "le",
    "legacy_contiguous_format",
    "lerp",
    "less",
    "less_equal",
    "lgamma",
    "linalg",
    "linspace",
    "load",
    "lobpcg",
    "log",
    "log10",
    "log10_",
    "log1p",
    "log1p_",
    "log2",
    "log2_",
    "log_",
    "log_softmax",
    "logaddexp",
    "logaddexp2",
    "logcumsumexp",
    "logdet",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logit",
    "logit_",
    "logspace",
    "logsumexp",
    "long",
    "lstm",
    "lstm_cell",
    "lt",
    "lu",
    "lu_solve",
    "lu_unpack",
    "manual_seed",
    "map",
    "margin_ranking_loss",
    "masked",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "matmul",
    "matrix_exp",
    "matrix_power",
    "max",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool3d",
    "maximum",
    "mean",
    "median",
    "memory_format",
    "meshgrid",
    "min",
    "minimum",
    "mm",
    "mode",
    "models",
    "moveaxis",
    "movedim",
    "mps",
    "msort",
    "mul",
    "multinomial",
    "multiply",
    "multiprocessing",
    "mv",
    "mvlgamma",
    "nan",
    "nan_to_num",
    "nan_to_num_",
    "nanmean",
    "nanmedian",
    "nanquantile",
    "nansum",
    "narrow",
    "narrow_copy",
    "native_batch_norm",
    "native_channel_shuffle",
    "native_dropout",
    "native_dropout_backward",
    "native_group_norm",
    "native_layer_norm",
    "ne",
    "neg",
    "neg_",
    "negative",
    "negative_",
    "nested",
    "newaxis",
    "nextafter",
    "nn",
    "no_grad",
    "nonzero",
    "nonzero_static",
    "norm",
    "norm_except_dim",
    "normal",
    "not_equal",
    "nuclear_norm",
    "numel",
    "ones",
    "ones_like",
    "onnx",
    "opencl",
    "optim",
    "orgqr",
    "ormqr",
    "outer",
    "overrides",
    "pairwise_distance",
    "pca_lowrank",
    "pdist",
    "per_channel_affine",
    "per_channel_affine_float_qparams",
    "per_channel_symmetric",
    "per_tensor_affine",
    "per_tensor_symmetric",
    "permute",
    "permute_copy",
    "pi",
    "pinverse",
    "pixel_shuffle",
    "pixel_unshuffle",
    "poisson",
    "poisson_nll_loss",
    "polar",
    "polygamma",
    "positive",
    "pow",
    "prelu",
    "preserve_format",
    "printoptions",
    "prod",
    "profiler",
    "promote_types",
    "put",
    "qint32",
    "qint8",
    "qr",
    "qscheme",
    "quantile",
    "quantization",
    "quasirandom",
    "quint2x4",
    "quint4x2",
    "quint8",
    "rad2deg",
    "rad2deg_",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "random",
    "randperm",
    "range",
    "ravel",
    "real",
    "reciprocal",
    "reciprocal_",
    "register_backend",
    "relu",
    "relu_",
    "remainder",
    "renorm",
    "repeat_interleave",
    "reshape",
    "resize_as_",
    "resolve_conj",
    "resolve_neg",
    "result_type",
    "rms_norm",
    "rnn_relu",
    "rnn_relu_cell",
    "rnn_tanh",
    "rnn_tanh_cell",
    "roll",
    "rot90",
    "round",
    "round_",
    "row_stack",
    "rrelu",
    "rrelu_",
    "rsqrt",
    "rsqrt_",
    "rsub",
    "saddmm",
    "save",
    "scalar_tensor",
    "scan",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "searchsorted",
    "seed",
    "segment_reduce",
    "select",
    "select_copy",
    "select_scatter",
    "selu",
    "selu_",
    "serialization",
    "set_anomaly_enabled",
    "set_autocast_cache_enabled",
    "set_autocast_cpu_dtype",
    "set_autocast_cpu_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
    "set_default_device",
    "set_default_dtype",
    "set_default_tensor_type",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "set_grad_enabled",
    "set_num_interop_threads",
    "set_num_threads",
    "set_printoptions",
    "set_rng_state",
    "set_warn_always",
    "sgn",
    "short",
    "sigmoid",
    "sigmoid_",
    "sign",
    "signal",
    "signbit",
    "sin",
    "sin_",
    "sinc",
    "sinc_",
    "sinh",
    "sinh_",
    "slice_copy",
    "slice_scatter",
    "slogdet",
    "smm",
    "softmax",
    "sort",
    "sparse",
    "sparse_bsc",
    "sparse_bsc_tensor",
    "sparse_bsr",
    "sparse_bsr_tensor",
    "sparse_compressed_tensor",
    "sparse_coo",
    "sparse_coo_tensor",
    "sparse_csc",
    "sparse_csc_tensor",
    "sparse_csr",
    "sparse_csr_tensor",
    "special",
    "split",
    "split_copy",
    "split_with_sizes",
    "split_with_sizes_copy",
    "spmm",
    "sqrt",
    "sqrt_",
    "square",
    "square_",
    "squeeze",
    "squeeze_copy",
    "sspaddmm",
    "stack",
    "std",
    "std_mean",
    "stft",
    "strided",
    "sub",
    "subtract",
    "sum",
    "summary",
    "svd",
    "svd_lowrank",
    "swapaxes",
    "swapdims",
    "t",
    "t_copy",
    "take",
    "take_along_dim",
    "tan",
    "tan_",
    "tanh",
    "tanh_",
    "tensor",
    "tensor_split",
    "tensordot",
    "testing",
    "threshold",
    "threshold_",
    "tile",
    "timeseries",
    "topk",
    "trace",
    "transpose",
    "transpose_copy",
    "trapezoid",
    "trapz",
    "triangular_solve",
    "tril",
    "tril_indices",
    "triplet_margin_loss",
    "triu",
    "triu_indices",
    "true_divide",
    "trunc",
    "trunc_",
    "typename",
    "types",
    "uint1",
    "uint16",
    "uint2",
    "uint3",
    "uint32",
    "uint4",
    "uint5",
    "uint6",
    "uint64",
    "uint7",
    "uint8",
    "unbind",
    "unbind_copy",
    "unflatten",
    "unfold_copy",
    "unique",
    "unique_consecutive",
    "unravel_index",
    "unsafe_chunk",
    "unsafe_split",
    "unsafe_split_with_sizes",
    "unsqueeze",
    "unsqueeze_copy",
    "use_deterministic_algorithms",
    "utils",
    "vander",
    "var",
    "var_mean",
    "vdot",
    "version",
    "view_as_complex",
    "view_as_complex_copy",
    "view_as_real",
    "view_as_real_copy",
    "view_copy",
    "vmap",
    "vsplit",
    "vstack",
    "webgpu",
    "where",
    "while_loop",
    "xlogy",
    "xlogy_",
    "xpu",
    "zero_",
    "zeros",
    "zeros_like",
]
