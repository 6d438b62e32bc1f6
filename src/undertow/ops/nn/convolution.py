"""Convolution in any number of dimensions, and its transpose.

Note [one convolution]
A convolution is bilinear: y = x * w. With the cotangent of y it makes three products, each of which
gives one of x, w and y from the two others, and the derivatives of each product are the two others.
So three ops are closed under differentiation: the backend form `convolution` with another one
wanted. All three are the form `conv` on views of their operands and their result, with the geometry
of Note [convolution geometry]. The transposed convolution is the product that gives x.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

from ...backends.base import Array, Forms
from ...core.dispatch import apply
from ...core.op import Op
from ...core.register import function
from ...core.tensor import Tensor, differentiated
from ...errors import ArgumentError, DTypeError, ShapeError
from ...kernel.windows import Geometry, Padding, same_padding
from ...shapes import Ints, Shape, frozen, per_dim
from ..elementwise.activation import relu
from ..reduce.reduction import sum
from ..shape.movement import narrowed, reshaped
from ..shape.padding import continued


# The primitives; see Note [one convolution] ----------------------------------------------------
def _forward(k: Forms, x: Array, w: Array, bias: Array, geometry: Geometry, groups: int) -> Any:
    return k.convolution("y", x, w, bias, geometry, groups)


def _input_forward(
    k: Forms, y: Array, w: Array, bias: Array, geometry: Geometry, groups: int
) -> Any:
    return k.convolution("x", y, w, bias, geometry, groups)


def _weight_forward(k: Forms, x: Array, y: Array, geometry: Geometry, groups: int) -> Any:
    return k.convolution("w", x, y, None, geometry, groups)


def _by_bias(g: Tensor) -> Tensor:
    return sum(g, (0, *range(2, g.ndim)))


# The same rules on arrays; see Note [bare rules].
def _bare_bias(k: Forms, g: Array) -> Any:
    return k.reduce("sum", g, (0, *range(2, len(g.shape))), False)


def _bare_conv(k: Forms, x: Array, w: Array, geometry: Geometry, groups: int) -> Any:
    return k.convolution("y", x, w, None, geometry, groups)


def _bare_input(k: Forms, y: Array, w: Array, geometry: Geometry, groups: int) -> Any:
    return k.convolution("x", y, w, None, geometry, groups)


def _bare_weight(k: Forms, y: Array, x: Array, geometry: Geometry, groups: int) -> Any:
    return k.convolution("w", x, y, None, geometry, groups)


_conv: Op = Op(
    "conv",
    _forward,
    inputs="x w bias",
    params="geometry groups",
    vjp={
        "x": lambda g, w, geometry, groups: apply(_input, (g, w, None), (geometry, groups)),
        "w": lambda g, x, geometry, groups: apply(_weight, (x, g), (geometry, groups)),
        "bias": _by_bias,
    },
    bare={"x": _bare_input, "w": _bare_weight, "bias": _bare_bias},
)
_conv_relu: Op = Op(  # where nothing is recorded, so it needs no rules
    "conv_relu",
    lambda k, x, w, bias, geometry, groups: k.convolution("y", x, w, bias, geometry, groups, True),
    inputs="x w bias",
    params="geometry groups",
)
_input: Op = Op(
    "conv_input",
    _input_forward,
    inputs="y w bias",
    params="geometry groups",
    vjp={
        "y": lambda g, w, geometry, groups: apply(_conv, (g, w, None), (geometry, groups)),
        "w": lambda g, y, geometry, groups: apply(_weight, (g, y), (geometry, groups)),
        "bias": _by_bias,
    },
    bare={"y": _bare_conv, "w": _weight_forward, "bias": _bare_bias},
)
_weight: Op = Op(
    "conv_weight",
    _weight_forward,
    inputs="x y",
    params="geometry groups",
    vjp={
        "x": lambda g, y, geometry, groups: apply(_input, (y, g, None), (geometry, groups)),
        "y": lambda g, x, geometry, groups: apply(_conv, (x, g, None), (geometry, groups)),
    },
    bare={
        "x": lambda k, g, y, geometry, groups: _bare_input(k, y, g, geometry, groups),
        "y": lambda k, g, x, geometry, groups: _bare_conv(k, x, g, geometry, groups),
    },
)


# Arguments -----------------------------------------------------------------------------------
def _pairs(
    op: str, padding: Any, size: Shape, kernel: Shape, stride: Shape, dilation: Shape
) -> Padding:
    """The padding in front and behind, for every dimension."""
    rank = len(size)
    if isinstance(padding, str):
        if padding == "valid":
            return ((0, 0),) * rank
        if padding == "same":
            return tuple(map(same_padding, size, kernel, stride, dilation))
        raise ArgumentError(
            f"[{op}] padding must be 'valid', 'same', an integer, one for each dimension, or a "
            f"(low, high) pair for each dimension, got {padding!r}"
        )
    if isinstance(padding, Sequence) and any(isinstance(p, Sequence) for p in padding):
        if len(padding) != rank or any(len(p) != 2 for p in padding):
            raise ArgumentError(
                f"[{op}] padding by pairs needs (low, high) for each of {rank} dimensions, got "
                f"{padding!r}"
            )
        low, high = zip(*padding, strict=True)
        whole = per_dim(op, "padding", low, rank, None), per_dim(op, "padding", high, rank, None)
        return tuple(zip(*whole, strict=True))
    return tuple([(p, p) for p in per_dim(op, "padding", padding, rank)])


@functools.lru_cache(maxsize=1024)
def _geometry(
    op: str, size: Shape, kernel: Shape, stride: Any, padding: Any, dilation: Any
) -> Geometry:
    """The geometry of a forward convolution, checked."""
    rank = len(size)
    steps = per_dim(op, "stride", stride, rank, 1)
    gaps = per_dim(op, "dilation", dilation, rank, 1)
    if 0 in kernel:
        raise ShapeError(f"[{op}] the kernel is empty: its size is {kernel}")
    pads = _pairs(op, padding, size, kernel, steps, gaps)
    geometry = Geometry(size, kernel, steps, pads, (1,) * rank, gaps)
    if any(map(operator.gt, geometry.extent, geometry.padded)):
        dilated = f", dilated {gaps}," if max(gaps) > 1 else ""
        raise ShapeError(
            f"[{op}] a kernel of size {kernel}{dilated} needs inputs of at least "
            f"{geometry.extent}; the input has {size}, with padding {geometry.padded}"
        )
    return geometry


@functools.lru_cache(maxsize=1024)
def _transposed_geometry(
    op: str,
    size: Shape,
    kernel: Shape,
    stride: Any,
    padding: Any,
    output_padding: Any,
    dilation: Any,
) -> Geometry:
    """The geometry of the convolution whose input gradient is the transposed one, checked."""
    rank = len(size)
    steps = per_dim(op, "stride", stride, rank, 1)
    gaps = per_dim(op, "dilation", dilation, rank, 1)
    extra = per_dim(op, "output_padding", output_padding, rank)
    if 0 in kernel:
        raise ShapeError(f"[{op}] the kernel is empty: its size is {kernel}")
    if isinstance(padding, str):
        raise ArgumentError(
            f"[{op}] padding must be an integer, one for each dimension, or a (low, high) pair for "
            f"each dimension, got {padding!r}"
        )
    for more, step, gap in zip(extra, steps, gaps, strict=True):
        if more >= max(step, gap):
            raise ArgumentError(
                f"[{op}] output_padding must be less than stride or dilation, got output_padding "
                f"{extra}, stride {steps} and dilation {gaps}"
            )
    pads = _pairs(op, padding, size, kernel, steps, gaps)
    # What output_padding adds at the end was out of reach of the last window.
    short = tuple([(low, high - more) for (low, high), more in zip(pads, extra, strict=True)])
    whole = Geometry(size, kernel, (1,) * rank, ((0, 0),) * rank, steps, gaps)
    result = tuple(
        [
            n + reach - 1 - low - high
            for n, reach, (low, high) in zip(whole.padded, whole.extent, short, strict=True)
        ]
    )
    if min(result, default=0) < 0 or 0 in size:
        raise ShapeError(
            f"[{op}] an input of size {size} with kernel {kernel}, stride {steps}, padding "
            f"{padding!r} and dilation {gaps} would give an output of size {result}"
        )
    return Geometry(result, kernel, steps, short, (1,) * rank, gaps)


def _batched(op: str, input: Tensor, weight: Tensor, rank: int) -> tuple[Tensor, bool]:
    """The input with a batch dimension, and whether it had one."""
    dims = len(input._array.shape)
    if len(weight._array.shape) != rank + 2 or dims not in (rank + 1, rank + 2):
        what = "(O, C / groups, …)" if "transpose" not in op else "(C, O / groups, …)"
        raise ShapeError(
            f"[{op}] expects an input (N, C, …) or (C, …) and a weight {what} of {rank + 2} "
            f"dimensions, got shapes {input.shape} and {weight.shape}"
        )
    if dims == rank + 2:
        return input, True
    return reshaped(input, (1, *input.shape)), False


def _check(
    op: str, input: Tensor, weight: Tensor, bias: Tensor | None, groups: int, outputs: int
) -> None:
    """Raise unless the operands have one dtype that can be multiplied, and groups and bias fit."""
    dtype = input._array.dtype
    for name, t in (("weight", weight), ("bias", bias)):
        if t is not None and t._array.dtype != dtype:
            raise DTypeError(
                f"[{op}] expects tensors of one dtype, got input {input.dtype} and {name} "
                f"{t.dtype}; convert one with .to({input.dtype})"
            )
    if dtype.kind == "b":
        raise DTypeError(f"[{op}] is not defined for bool tensors; convert them with .to(ut.int64)")
    if groups < 1:
        raise ArgumentError(f"[{op}] groups must be at least 1, got {groups}")
    if bias is not None and bias._array.shape != (outputs,):
        raise ShapeError(
            f"[{op}] bias must have one element for each of {outputs} output channels, got shape "
            f"{bias.shape}"
        )


_MODES = ("zeros", "reflect", "replicate", "circular")


def _convolve(
    op: str,
    rank: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    padding_mode: str,
    activation: str | None,
) -> Tensor:
    x, batched = _batched(op, input, weight, rank)
    shape, (outputs, inputs, *kernel) = x._array.shape, weight._array.shape
    _check(op, input, weight, bias, groups, outputs)
    if shape[1] != inputs * groups:
        raise ShapeError(
            f"[{op}] a weight of shape {weight.shape} takes {inputs} input channels per group; "
            f"with groups={groups} the input needs {inputs * groups}, got {x.shape[1]}"
        )
    if outputs % groups or not outputs:
        raise ShapeError(
            f"[{op}] {outputs} output channels, as in a weight of shape {weight.shape}, do not "
            f"divide into {groups} groups"
        )
    geometry = _geometry(
        op, shape[2:], tuple(kernel), frozen(stride), frozen(padding), frozen(dilation)
    )
    if padding_mode != "zeros":
        if padding_mode not in _MODES:
            raise ArgumentError(
                f"[{op}] padding_mode must be one of {', '.join(_MODES)}, got {padding_mode!r}"
            )
        x = continued(x, ((0, 0), (0, 0), *geometry.padding), padding_mode)
        geometry = geometry._replace(size=x.shape[2:], padding=((0, 0),) * rank)
    out = _activated(op, activation, (x, weight, bias), (geometry, groups))
    if not inputs:  # as in torch, no channels make no channels, and no gradient of the bias
        out = narrowed(out, 1, 0, 0)
    return out if batched else reshaped(out, out.shape[1:])


def _activated(op: str, activation: str | None, operands: Any, params: Any) -> Tensor:
    """The convolution and its activation: in one go, unless the step between is to be recorded."""
    if activation is None:
        return apply(_conv, operands, params)
    if activation != "relu":
        raise ArgumentError(f"[{op}] activation must be 'relu' or None, got {activation!r}")
    if not operands[0].dtype.is_floating_point:
        raise DTypeError(f"[{op}] an activation needs floating tensors, got {operands[0].dtype}")
    if differentiated(*operands):
        return relu(apply(_conv, operands, params))
    return apply(_conv_relu, operands, params)


def _convolve_transposed(
    op: str,
    rank: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
) -> Tensor:
    y, batched = _batched(op, input, weight, rank)
    inputs, outputs = weight.shape[:2]
    _check(op, input, weight, bias, groups, outputs * groups)
    if y.shape[1] != inputs or inputs % groups or not outputs:
        raise ShapeError(
            f"[{op}] a weight of shape {weight.shape} takes {inputs} input channels, which "
            f"{groups} groups must divide, got an input with {y.shape[1]}"
        )
    geometry = _transposed_geometry(
        op,
        y.shape[2:],
        weight.shape[2:],
        frozen(stride),
        frozen(padding),
        frozen(output_padding),
        frozen(dilation),
    )
    out = apply(_input, (y, weight, bias), (geometry, groups))
    return out if batched else reshaped(out, out.shape[1:])


# Convolutions --------------------------------------------------------------------------------
@function(method=False, functional=True)
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
    *,
    padding_mode: str = "zeros",
    activation: str | None = None,
) -> Tensor:
    """Correlate signals (N, C, L) or (C, L) with kernels (O, C / groups, K).

    `padding` is an integer, "valid" (none), "same" (as many windows as ceil(L / stride), as in
    TensorFlow), or, beyond torch, a (low, high) pair for each dimension, where a negative number
    cuts elements off. Groups of input channels see only their own group of kernels. What is added
    around the input is, by `padding_mode`, "zeros", or, as in `pad`, "reflect", "replicate" or
    "circular" (which torch knows only in `nn`). With `activation="relu"` what is negative becomes 0
    before it is written, in one pass where no gradient is recorded.

    >>> import undertow as ut
    >>> x, w = ut.tensor([[[1.0, 2.0, 3.0, 4.0]]]), ut.tensor([[[1.0, 10.0]]])
    >>> ut.conv1d(x, w)
    tensor([[[21., 32., 43.]]])
    >>> ut.conv1d(x, w, stride=2, padding=[(1, 0)])
    tensor([[[10., 32.]]])
    >>> ut.conv1d(x, w, padding=[(1, 0)], padding_mode="circular")
    tensor([[[14., 21., 32., 43.]]])
    """
    return _convolve(
        "conv1d",
        1,
        input,
        weight,
        bias,
        stride,
        padding,
        dilation,
        groups,
        padding_mode,
        activation,
    )


@function(method=False, functional=True)
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
    *,
    padding_mode: str = "zeros",
    activation: str | None = None,
) -> Tensor:
    """Correlate images (N, C, H, W) or (C, H, W) with kernels (O, C / groups, kH, kW).

    The arguments are those of `conv1d`, as one integer or one for each dimension.

    >>> import undertow as ut
    >>> ut.conv2d(ut.ones(1, 2, 3, 3), ut.ones(1, 2, 3, 3), padding=(0, 1))
    tensor([[[[12., 18., 12.]]]])
    """
    return _convolve(
        "conv2d",
        2,
        input,
        weight,
        bias,
        stride,
        padding,
        dilation,
        groups,
        padding_mode,
        activation,
    )


@function(method=False, functional=True)
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
    *,
    padding_mode: str = "zeros",
    activation: str | None = None,
) -> Tensor:
    """Correlate volumes (N, C, D, H, W) or (C, D, H, W) with kernels (O, C / groups, kD, kH, kW).

    The arguments are those of `conv1d`, as one integer or one for each dimension.

    >>> import undertow as ut
    >>> ut.conv3d(ut.ones(1, 1, 2, 2, 2), ut.ones(1, 1, 2, 2, 2), ut.tensor([0.5]))
    tensor([[[[[8.5000]]]]])
    """
    return _convolve(
        "conv3d",
        3,
        input,
        weight,
        bias,
        stride,
        padding,
        dilation,
        groups,
        padding_mode,
        activation,
    )


@function(method=False, functional=True)
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The transpose of `conv1d`: every input element adds the kernel to the output around it.

    The weight is (C, O / groups, K): as in the convolution from O to C channels whose gradient this
    is. `padding` takes that many elements off the ends, and `output_padding` adds some at the end.

    >>> import undertow as ut
    >>> x, w = ut.tensor([[[1.0, 2.0]]]), ut.tensor([[[1.0, 10.0, 100.0]]])
    >>> ut.conv_transpose1d(x, w, stride=2)
    tensor([[[  1.,  10., 102.,  20., 200.]]])
    """
    return _convolve_transposed(
        "conv_transpose1d",
        1,
        input,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
    )


@function(method=False, functional=True)
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The transpose of `conv2d`, with a weight (C, O / groups, kH, kW); see `conv_transpose1d`.

    >>> import undertow as ut
    >>> ut.conv_transpose2d(ut.ones(1, 1, 2, 2), ut.ones(1, 1, 2, 2))
    tensor([[[[1., 2., 1.],
              [2., 4., 2.],
              [1., 2., 1.]]]])
    """
    return _convolve_transposed(
        "conv_transpose2d",
        2,
        input,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
    )


@function(method=False, functional=True)
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The transpose of `conv3d`, with a weight (C, O / groups, kD, kH, kW); see `conv_transpose1d`.

    >>> import undertow as ut
    >>> ut.conv_transpose3d(ut.ones(1, 1, 1, 1, 1), ut.ones(1, 2, 1, 2, 2), stride=2).shape
    (1, 2, 1, 2, 2)
    """
    return _convolve_transposed(
        "conv_transpose3d",
        3,
        input,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
    )
