"""`out=`: which functions take it, and how a result gets into the tensor that was given.

The list is torch's. The result is computed as usual and then copied, so every function obeys the
same rules: `out` has a dtype that the result can be cast to, is given the result's shape (with a
warning, unless it was empty), and nothing of it can be recorded for a backward.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from ..backends.registry import backend_of
from ..dtypes import as_dtype, int64, uint8
from ..dtypes import bool as bool_
from ..errors import ArgumentError, DeviceError, DTypeError, GradientError
from .inplace import overwrite
from .modes import current
from .other_kinds import OtherKind
from .tensor import Tensor, node_of, wrap

TAKES_OUT = frozenset(
    """
    abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr alias_copy all amax amin
    aminmax angle any arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin
    argsort as_strided_copy asin asinh atan atan2 atanh baddbmm bernoulli bitwise_and
    bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor bmm bucketize cat ceil
    chain_matmul cholesky cholesky_inverse cholesky_solve clamp clamp_max clamp_min clip
    column_stack complex concat concatenate conj_physical copysign cos cosh cross cummax cummin
    cumprod cumsum deg2rad detach_copy diag diagonal_copy diff digamma div divide dot dstack empty
    eq erf erfc erfinv exp exp2 expand_copy expm1 eye fix float_power floor floor_divide fmax fmin
    fmod frac frexp frobenius_norm full gather gcd ge geqrf ger greater greater_equal gt hardshrink
    hardsigmoid hardtanh heaviside histc histogram hstack hypot i0 igamma igammac index_add
    index_copy index_reduce index_select inner inverse isin isneginf isposinf kron kthvalue lcm
    ldexp le leaky_relu lerp less less_equal lgamma linspace log log10 log1p log2 log_softmax
    logaddexp logaddexp2 logcumsumexp logical_and logical_not logical_or logical_xor logit logspace
    logsumexp lt lu_solve lu_unpack masked_select matmul matrix_power max maximum mean median min
    minimum mm mode msort mul multinomial multiply mv mvlgamma nan_to_num nanmean nanmedian
    nanquantile nansum narrow_copy ne neg negative nextafter nonzero nonzero_static norm normal
    not_equal nuclear_norm ones orgqr ormqr outer permute_copy polar polygamma pow prod qr quantile
    rad2deg rand randint randn randperm range reciprocal remainder renorm round row_stack rsqrt
    scatter scatter_add scatter_reduce searchsorted select_copy sgn sigmoid sign signbit sin sinc
    sinh slice_copy slice_scatter slogdet softmax sort split_copy split_with_sizes_copy sqrt square
    squeeze_copy stack std sub subtract sum svd t_copy take take_along_dim tan tanh tensordot
    threshold topk transpose_copy triangular_solve tril triu true_divide trunc unbind_copy
    unfold_copy unsqueeze_copy var vdot view_as_complex_copy view_as_real_copy view_copy vstack
    where xlogy zeros
    """.split()  # noqa: SIM905
)
_SPACES = ("fft", "linalg", "special")  # whose functions all take it, but for these
_WITHOUT = frozenset(
    """
    linalg.diagonal linalg.lstsq linalg.matrix_exp linalg.vander fft.fftshift fft.ifftshift
    special.log_softmax special.softmax
    """.split()  # noqa: SIM905
)
# Of nn.functional, which are not at the top.
_FUNCTIONAL = frozenset(
    ["avg_pool2d", "avg_pool3d", "gelu", "linear", "logsigmoid", "softplus", "softshrink"]
)
# What computes in the dtype of `out` unless it is told another one; functions that make a tensor do
# so as well.
_IN_ITS_DTYPE = frozenset(("cumprod", "cumsum", "mean", "nanmean", "nansum", "prod", "sum"))

# What is written as bool or uint8 alone, whichever of them it is by itself.
_TRUTHS = frozenset(("all", "any"))

# What fills an `out` of as many elements in its order, whatever its shape.
_IN_ITS_SHAPE = frozenset(("arange", "linspace", "logspace", "range"))


def takes_out(name: str, space: str = "") -> bool:
    """Whether `ut.name`, or `ut.space.name`, takes `out`."""
    if space:
        return space in _SPACES and f"{space}.{name}" not in _WITHOUT
    return name in TAKES_OUT or name in _FUNCTIONAL


def into(
    name: str, fn: Callable[..., Any], out: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call `fn` and copy what it gives into `out`, a tensor or as many as there are results."""
    if isinstance(out, OtherKind):
        return out._receive(name, fn(*args, **kwargs))
    several = isinstance(out, (tuple, list))
    outs = tuple(out) if several else (out,)
    for o in outs:
        if not isinstance(o, Tensor):
            raise DTypeError(f"[{name}] out must be a Tensor, got {type(o).__name__}")
        if current().grad and node_of(o) is not None:
            raise _no_gradients(name, "out")
    _in_its_dtype(name, fn, outs[0], kwargs)
    tracked = "device" in fn.__annotations__ and kwargs.pop("requires_grad", False)
    found = fn(*args, **kwargs)
    results = (found,) if isinstance(found, Tensor) else tuple(found)
    if several == isinstance(found, Tensor) or len(outs) != len(results):
        one = isinstance(found, Tensor)
        wanted = "one tensor" if one else f"a tuple of {len(results)} tensors"
        given = f"a tuple of {len(outs)}" if several else "one tensor"
        raise ArgumentError(f"[{name}] out must be {wanted}, got {given}")
    if any(node_of(r) is not None for r in results):
        raise _no_gradients(name, "an input")
    for target, result in zip(outs, results, strict=True):
        _put(name, target, result)
        if tracked:
            target.requires_grad_()
    if not several:
        return out
    return type(found)(*outs) if hasattr(found, "_fields") else outs


def with_out(fn: Callable[..., Any], name: str) -> Callable[..., Any]:
    """`fn`, which takes just tensors as a rule, with the argument `out`."""
    code = fn.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    def unary(input: Any, *, out: Any = None) -> Any:
        return fn(input) if out is None else into(name, fn, out, (input,), {})

    def binary(input: Any, other: Any, *, out: Any = None) -> Any:
        return fn(input, other) if out is None else into(name, fn, out, (input, other), {})

    def any_other(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        return fn(*args, **kwargs) if out is None else into(name, fn, out, args, kwargs)

    by_names: dict[tuple[str, ...], Callable[..., Any]] = {
        ("input",): unary,
        ("input", "other"): binary,
    }
    return functools.wraps(fn)(by_names.get(names, any_other))


def _in_its_dtype(name: str, fn: Callable[..., Any], out: Tensor, kwargs: dict[str, Any]) -> None:
    makes = "device" in fn.__annotations__
    if not makes and name not in _IN_ITS_DTYPE:
        return
    wanted = kwargs.get("dtype")
    if wanted is None:
        kwargs["dtype"] = out.dtype
    elif as_dtype(wanted) is not out.dtype:
        raise DTypeError(f"[{name}] dtype={wanted} is not that of out, {out.dtype}; leave it out")
    if makes and kwargs.get("device") is None:
        kwargs["device"] = out.device


def _no_gradients(name: str, what: str) -> GradientError:
    return GradientError(
        f"[{name}] functions with out=... arguments don't support automatic differentiation, but "
        f"{what} requires gradients; leave out= away, or compute under no_grad()"
    )


def _put(name: str, out: Tensor, result: Tensor) -> None:
    if name in _TRUTHS:
        if out.dtype not in (bool_, uint8):
            raise DTypeError(f"[{name}] out must be bool or uint8, got {out.dtype}")
    elif name == "nonzero" and out.dtype is not int64:
        raise DTypeError(f"[nonzero] out must be int64, got {out.dtype}")
    elif result.dtype.category > out.dtype.category and name != "bernoulli":  # zeros and ones fit
        raise DTypeError(
            f"[{name}] the result is {result.dtype}, which can't be cast to the dtype of out, "
            f"{out.dtype}"
        )
    k = backend_of(out._array)
    if backend_of(result._array) is not k:
        raise DeviceError(
            f"[{name}] the result is on device {str(result.device)!r} and out on "
            f"{str(out.device)!r}; move one of them first"
        )
    if name in _IN_ITS_SHAPE and out.numel() == result.numel():
        result = result.view(out.shape)
    if out.shape != result.shape:
        if out.numel():
            warnings.warn(
                f"[{name}] out had shape {out.shape} and was resized to that of the result, "
                f"{result.shape}; resize it to no elements by out.resize_(0) to allow that",
                stacklevel=4,
            )
        out.data = wrap(k.empty(result.shape, out._array.dtype))
    overwrite(name, out, result)
