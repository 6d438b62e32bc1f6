"""Softmax and its relatives: exponentials divided by their sum along one dimension."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..core.dispatch import apply, cast
from ..core.op import Op
from ..core.register import function
from ..core.tensor import Tensor
from ..errors import ArgumentError, DTypeError
from ..kernel.expr import call, trace, where
from ..shapes import wrap_dims
from .creation import empty_like
from .reduction import sum

_NEVER = float("-inf")
_multiply = trace(lambda a, b: a * b, 2)
_divide = trace(lambda a, b: a / b, 2)
_subtract = trace(lambda a, b: a - b, 2)
_exp = trace(lambda a: call("exp", a), 1)
_exp_difference = trace(lambda a, b: call("exp", a - b), 2)
_minus_log = trace(lambda a, b: a - call("log", b), 2)
_finite_peak = trace(lambda m: where(m == _NEVER, 0.0, m), 1)
_nonzero_total = trace(lambda s: where(s == 0.0, 1.0, s), 1)
_weighted_difference = trace(lambda p, v, s: p * (v - s), 3)
_minus_share = trace(lambda v, out, s: v - call("exp", out) * s, 3)


# Note [softmax rules]
# The Jacobian of softmax, diag(p) - p pᵀ, and that of log_softmax, I - 1 pᵀ, act on a cotangent by
# one reduction and one map. Those products are ops of their own, so that a backward makes few
# passes over memory; each is linear in the cotangent and has its own rules for higher orders.


def _softmax_forward(k: Any, x: Any, dims: tuple[int, ...], masked: bool) -> Any:
    if not x.size:
        return k.copy(x)
    wide = _widen(k, x)
    peak = k.reduce("max", wide, dims, True)
    if masked:
        peak = k.map(_finite_peak, (peak,), wide.dtype)
    e = k.map(_exp_difference, (wide, peak), wide.dtype)
    total = k.reduce("sum", e, dims, True)
    if masked:
        total = k.map(_nonzero_total, (total,), wide.dtype)
    out = k.map(_divide, (e, total), wide.dtype)
    return out if wide is x else k.cast(out, x.dtype)


def _log_softmax_forward(k: Any, x: Any, dims: tuple[int, ...]) -> Any:
    if not x.size:
        return k.copy(x)
    wide = _widen(k, x)
    centred = k.map(_subtract, (wide, k.reduce("max", wide, dims, True)), wide.dtype)
    total = k.reduce("sum", k.map(_exp, (centred,), wide.dtype), dims, True)
    out = k.map(_minus_log, (centred, total), wide.dtype)
    return out if wide is x else k.cast(out, x.dtype)


def _widen(k: Any, x: Any) -> Any:
    """Half precision is computed in single."""
    return k.cast(x, dtypes.float32.numpy) if x.dtype.itemsize == 2 else x


def _softmax_product_forward(k: Any, v: Any, p: Any, dims: tuple[int, ...]) -> Any:
    total = k.reduce("sum", k.map(_multiply, (v, p), v.dtype), dims, True)
    return k.map(_weighted_difference, (p, v, total), v.dtype)


def _log_softmax_product_forward(k: Any, v: Any, log_p: Any, dims: tuple[int, ...]) -> Any:
    return k.map(_minus_share, (v, log_p, k.reduce("sum", v, dims, True)), v.dtype)


def softmax_vjp(g: Tensor, p: Tensor, dims: tuple[int, ...]) -> Tensor:
    """The cotangent of the scores whose softmax is `p`; see Note [softmax rules]."""
    return apply(_softmax_product, (g, p), (dims,))


def _total(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    return sum(x, dims, True) if dims else x


_softmax_product = Op(
    "softmax_product",
    _softmax_product_forward,
    inputs="v p",
    params="dims",
    vjp={
        "v": lambda g, p, dims: softmax_vjp(g, p, dims),
        "p": lambda g, v, p, dims: g * (v - _total(v * p, dims)) - v * _total(g * p, dims),
    },
)
_log_softmax_product = Op(
    "log_softmax_product",
    _log_softmax_product_forward,
    inputs="v log_p",
    params="dims",
    vjp={
        "v": lambda g, log_p, dims: g - _total(g * log_p.exp(), dims),
        "log_p": lambda g, v, log_p, dims: -(g * log_p.exp() * _total(v, dims)),
    },
)
_softmax = Op(
    "softmax",
    _softmax_forward,
    inputs="x",
    params="dims masked",
    vjp={"x": lambda g, out, dims: softmax_vjp(g, out, dims)},
)
_log_softmax = Op(
    "log_softmax",
    _log_softmax_forward,
    inputs="x",
    params="dims",
    vjp={"x": lambda g, out, dims: apply(_log_softmax_product, (g, out), (dims,))},
)


def _prepared(op: str, input: Tensor, dim: Any, dtype: Any) -> tuple[Tensor, tuple[int, ...]]:
    if dtype is not None:
        input = cast(input, dtypes.as_dtype(dtype))
    if input._array.dtype.kind in "biuc":
        fix = "take abs() or .real first" if input.is_complex() else "pass dtype=ut.float32"
        raise DTypeError(f"[{op}] expects a floating tensor, got {input.dtype}; {fix}")
    if dim is None:
        raise ArgumentError(
            f"[{op}] needs the dimension to normalise over; for shape {input.shape} pass "
            "dim=-1 for the last one"
        )
    return input, wrap_dims(op, dim, input.ndim)


@function(functional=True)
def softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """`exp(input)` divided by its sum along `dim`; never overflows.

    >>> import undertow as ut
    >>> ut.softmax(ut.tensor([0.0, 0.0, float("-inf")]), dim=0)
    tensor([0.5000, 0.5000, 0.0000])
    """
    input, dims = _prepared("softmax", input, dim, dtype)
    return apply(_softmax, (input,), (dims, False))


def masked_softmax(input: Tensor, dim: int) -> Tensor:
    """Softmax in which a row of nothing but -inf gives zeros instead of NaN."""
    input, dims = _prepared("softmax", input, dim, None)
    return apply(_softmax, (input,), (dims, True))


@function(functional=True)
def log_softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """`log(softmax(input, dim))`, accurate where the softmax itself would round to zero.

    >>> import undertow as ut
    >>> ut.log_softmax(ut.tensor([0.0, 1000.0]), dim=0)
    tensor([-1000.,     0.])
    """
    input, dims = _prepared("log_softmax", input, dim, dtype)
    return apply(_log_softmax, (input,), (dims,))


@function(top=False, method=False, functional=True)
def softmin(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """`softmax(-input)`: the smallest element weighs most.

    >>> import undertow as ut
    >>> ut.nn.functional.softmin(ut.tensor([5.0, 5.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    input, dims = _prepared("softmin", input, dim, dtype)
    return apply(_softmax, (-input,), (dims, False))


@function(top=False, method=False, functional=True)
def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A random sample from the relaxed categorical distribution of `logits` along `dim`.

    With `hard` the sample is one-hot, and its gradient is that of the soft sample (straight
    through). `eps` has no effect, as in torch.

    >>> import undertow as ut
    >>> ut.nn.functional.gumbel_softmax(ut.zeros(3, 4), hard=True).sum(-1)
    tensor([1., 1., 1.])
    """
    if not tau > 0:
        raise ArgumentError(f"[gumbel_softmax] tau must be greater than 0, got {tau}")
    logits, dims = _prepared("gumbel_softmax", logits, dim, None)
    # A Gumbel number is minus the logarithm of an exponential one.
    noise = empty_like(logits).exponential_().log()
    soft: Tensor = apply(_softmax, ((logits - noise) / tau,), (dims, False))
    if not hard:
        return soft
    value = soft.detach()
    chosen = value.argmax(dim, keepdim=True) if dims else value.argmax()
    one_hot: Tensor = value.new_zeros(value.shape).scatter(dim, chosen, 1.0)
    return one_hot - value + soft
