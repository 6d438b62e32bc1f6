"""Dropout: the input times a random mask that is scaled to keep its mean.

Note [dropout]
Where each element has a coin of its own, no mask is made: the coin is a function of the seed and
the element's position, so forward and backward toss it again, each in one kernel.
"""

from __future__ import annotations

from typing import Any

from ...backends.batch import copies
from ...backends.registry import backend_of
from ...core.batching import for_drawing
from ...core.dispatch import apply
from ...core.generator import default_generator
from ...core.inplace import write
from ...core.op import Op
from ...core.register import function
from ...core.tensor import Tensor
from ...errors import ArgumentError, DTypeError, ShapeError
from ...kernel.expr import trace, where
from ...shapes import Shape
from ..random.distributions import coins

_kept = trace(lambda x, coin, scale: x * where(coin, scale, 0.0), 3)
_kept_or_saturated = trace(
    lambda x, coin, scale, shift, rest: x * where(coin, scale, 0.0) + where(coin, shift, rest), 5
)
_dropout: Op = Op(
    "dropout",
    lambda k, x, scale, *coin: k.random_map(_kept, x, (scale,), *coin),
    inputs="x",
    params="scale limit seed offset",
    vjp={
        "x": lambda g, scale, limit, seed, offset: apply(
            _dropout, (g,), (scale, limit, seed, offset)
        )
    },
)
_alpha_dropout = Op(
    "alpha_dropout",
    lambda k, x, scale, shift, rest, *coin: k.random_map(
        _kept_or_saturated, x, (scale, shift, rest), *coin
    ),
    affine=True,
    inputs="x",
    params="scale shift rest limit seed offset",
    vjp={
        "x": lambda g, scale, limit, seed, offset: apply(
            _dropout, (g,), (scale, limit, seed, offset)
        )
    },
)


def _tossed(input: Tensor, p: Any) -> tuple[int, int, int]:
    """Below what a word keeps its element, and the seed and offset of as many words."""
    count = input.numel() * copies(backend_of(input._array))
    return round((1 - p) * 2**32), *default_generator.reserve(count)


def _keep(op: str, input: Tensor, p: Any, shape: Shape) -> Tensor:
    """A mask of `shape`: 1 with probability 1 - p, else 0."""
    return coins(op, shape, 1 - p, input.dtype, input.device, None)


def _checked(op: str, p: Any) -> None:
    if not 0 <= p <= 1:
        raise ArgumentError(f"[{op}] the probability p must lie in 0 to 1, got {p}")


def _check_floating(op: str, input: Tensor) -> None:
    if not input.is_floating_point():
        raise DTypeError(f"[{op}] needs a floating tensor, got {input.dtype}; convert it first")


def _result(op: str, input: Tensor, out: Tensor, inplace: bool) -> Tensor:
    return write(op, input, out) if inplace else out


def _dropped(op: str, input: Tensor, p: Any, training: bool, inplace: bool, shape: Shape) -> Tensor:
    if not training or p == 0:
        return input
    _check_floating(op, input)
    scale = 1.0 if p == 1 else 1 / (1 - p)
    if shape == input.shape:
        input = for_drawing(input)
        out = apply(_dropout, (input,), (scale, *_tossed(input, p)))
    else:
        out = input * (_keep(op, input, p, shape) * scale)
    return _result(op, input, out, inplace)


def _channel_shape(op: str, input: Tensor, batched: int) -> Shape:
    """One element for each channel: (N, C, 1, …), or (C, 1, …) with a dimension less."""
    shape = input.shape
    if len(shape) not in (batched - 1, batched):
        raise ShapeError(
            f"[{op}] expects {batched - 1} or {batched} dimensions, got shape {shape}; "
            "dropout drops single elements of any shape"
        )
    lead = len(shape) - batched + 2
    return shape[:lead] + (1,) * (len(shape) - lead)


@function(functional=True, top=False, method=False)
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element becomes zero with probability `p`; the others are divided by 1 - p.

    >>> import undertow as ut
    >>> ut.nn.functional.dropout(ut.ones(3), p=0.5, training=False)
    tensor([1., 1., 1.])
    """
    _checked("dropout", p)
    return _dropped("dropout", input, p, training, inplace, input.shape)


@function(functional=True, top=False, method=False)
def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Whole channels of (N, C, L) or (C, L) become zero with probability `p`.

    >>> import undertow as ut
    >>> ut.nn.functional.dropout1d(ut.ones(2, 3), p=1.0)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    _checked("dropout1d", p)
    shape = _channel_shape("dropout1d", input, 3)
    return _dropped("dropout1d", input, p, training, inplace, shape)


@function(functional=True, top=False, method=False)
def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Whole channels of (N, C, H, W) become zero with probability `p`.

    Three dimensions mean (N, C, L), as in torch, which keeps this for compatibility.

    >>> import undertow as ut
    >>> ut.nn.functional.dropout2d(ut.ones(1, 2, 1, 2), p=1.0)
    tensor([[[[0., 0.]],
    <BLANKLINE>
             [[0., 0.]]]])
    """
    _checked("dropout2d", p)
    _channel_shape("dropout2d", input, 4)
    shape = input.shape[:2] + (1,) * (input.ndim - 2)
    return _dropped("dropout2d", input, p, training, inplace, shape)


@function(functional=True, top=False, method=False)
def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Whole channels of (N, C, D, H, W) or (C, D, H, W) become zero with probability `p`.

    >>> import undertow as ut
    >>> ut.nn.functional.dropout3d(ut.ones(2, 1, 1, 1), p=1.0).sum()
    tensor(0.)
    """
    _checked("dropout3d", p)
    shape = _channel_shape("dropout3d", input, 5)
    return _dropped("dropout3d", input, p, training, inplace, shape)


_SATURATION = -1.7580993408473766  # SELU's limit at minus infinity: -scale * alpha


def _alpha_dropped(
    op: str, input: Tensor, p: Any, training: bool, inplace: bool, shape: Shape
) -> Tensor:
    """Dropped elements take SELU's saturation value; a, b restore mean 0 and variance 1."""
    _checked(op, p)
    if not training or p == 0:
        return input
    _check_floating(op, input)
    a = 0.0 if p == 1 else ((1 - p) * (1 + p * _SATURATION**2)) ** -0.5
    shift, rest = -_SATURATION * a * p, _SATURATION * a * (1 - p)
    if shape == input.shape:
        input = for_drawing(input)
        out = apply(_alpha_dropout, (input,), (a, shift, rest, *_tossed(input, p)))
    else:
        mask = _keep(op, input, p, shape)
        out = input * (mask * a) + (mask * (shift - rest) + rest)
    return _result(op, input, out, inplace)


@function(functional=True, top=False, method=False)
def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout for SELU networks: it keeps the mean and the variance of standard normal input.

    >>> import undertow as ut
    >>> ut.nn.functional.alpha_dropout(ut.ones(2), training=False)
    tensor([1., 1.])
    """
    return _alpha_dropped("alpha_dropout", input, p, training, inplace, input.shape)


@function(functional=True, top=False, method=False)
def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """`alpha_dropout` of whole channels, the second dimension.

    >>> import undertow as ut
    >>> ut.nn.functional.feature_alpha_dropout(ut.ones(1, 2), training=False)
    tensor([[1., 1.]])
    """
    op = "feature_alpha_dropout"
    if training and input.ndim < 2:
        raise ShapeError(f"[{op}] expects at least 2 dimensions, got shape {input.shape}")
    shape = input.shape[:2] + (1,) * max(input.ndim - 2, 0)
    return _alpha_dropped(op, input, p, training, inplace, shape)
