"""Complex numbers and their parts: real, imag, conj, angle, complex, polar, views as pairs.

Their derivatives are those of Note [complex gradients] in `core/conjugate`.
"""

from __future__ import annotations

import math
from typing import Any

from ... import dtypes
from ...backends.base import Array, Forms
from ...core.conjugate import conj_op, conjugate
from ...core.dispatch import apply, cast, elementwise, sum_to
from ...core.inplace import overwrite, zeros_of
from ...core.op import Op, elementwise_op
from ...core.register import attach, function
from ...core.tensor import Tensor
from ...dtypes import DType
from ...errors import DTypeError, ShapeError
from ...kernel.expr import call
from ...kernel.expr import where as choose
from ...shapes import Shape, broadcast_shapes
from .comparison import where

_REAL = {dtypes.complex64: dtypes.float32.numpy, dtypes.complex128: dtypes.float64.numpy}
_COMPLEX = {dtypes.float32: dtypes.complex64.numpy, dtypes.float64: dtypes.complex128.numpy}


# Parts ---------------------------------------------------------------------------------------
def _whole(g: Tensor, which: str) -> Tensor:
    """Complex numbers with `g` as one part, and zero as the other."""
    if which == "real":
        return cast(g, dtypes.complex_of(g.dtype))
    return complex_(zeros_of(g), g)


def _joined(g: Tensor) -> Tensor:
    return view_as_complex(g.contiguous())


def _split(g: Tensor) -> Tensor:
    return view_as_real(g)


_part = Op(
    "part",
    lambda k, x, which: k.part(x, which),
    inputs="x",
    params="which",
    view=True,
    vjp={"x": _whole},
)
_as_real = Op(
    "view_as_real",
    lambda k, x, dtype: k.bits(k.slice(x, (..., None)), dtype),
    inputs="x",
    params="dtype",
    view=True,
    vjp={"x": _joined},
)
_as_complex = Op(
    "view_as_complex",
    lambda k, x, dtype: k.slice(k.bits(x, dtype), (..., 0)),
    inputs="x",
    params="dtype",
    view=True,
    vjp={"x": _split},
)


@function(method=False)
def real(input: Tensor) -> Tensor:
    """A view of the real parts; a real tensor is returned as it is.

    >>> import undertow as ut
    >>> ut.real(ut.tensor([1 + 2j]))
    tensor([1.])
    """
    return apply(_part, (input,), ("real",)) if input.is_complex() else input


@function(method=False)
def imag(input: Tensor) -> Tensor:
    """A view of the imaginary parts.

    >>> import undertow as ut
    >>> ut.imag(ut.tensor([1 + 2j]))
    tensor([2.])
    """
    if not input.is_complex():
        raise DTypeError(f"[imag] expects a complex tensor, got {input.dtype}; its part is zero")
    return apply(_part, (input,), ("imag",))


def _set_part(part: Tensor, name: str, value: Tensor | float) -> None:
    if isinstance(value, Tensor):
        overwrite(name, part, value)
    else:
        part.fill_(value)


def _set_real(self: Tensor, value: Tensor | float) -> None:
    _set_part(real(self), "real", value)


def _set_imag(self: Tensor, value: Tensor | float) -> None:
    _set_part(imag(self), "imag", value)


def _real_part(self: Tensor) -> Tensor:
    return real(self)


def _imaginary_part(self: Tensor) -> Tensor:
    return imag(self)


attach("real", property(_real_part, _set_real, doc=real.__doc__))
attach("imag", property(_imaginary_part, _set_imag, doc=imag.__doc__))


@function()
def conj(input: Tensor) -> Tensor:
    """Complex conjugates, as a copy; a real tensor is returned as it is.

    >>> import undertow as ut
    >>> ut.conj(ut.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    found: Tensor = conjugate(input)
    return found


@function(method=False)
def view_as_real(input: Tensor) -> Tensor:
    """A view of complex numbers as pairs of real and imaginary part.

    >>> import undertow as ut
    >>> ut.view_as_real(ut.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    if not input.is_complex():
        raise DTypeError(f"[view_as_real] expects a complex tensor, got {input.dtype}")
    return apply(_as_real, (input,), (_REAL[input.dtype],))


@function(method=False)
def view_as_complex(input: Tensor) -> Tensor:
    """A view of pairs of real and imaginary part as complex numbers.

    >>> import undertow as ut
    >>> ut.view_as_complex(ut.tensor([[1.0, 2.0]]))
    tensor([1.+2.j])
    """
    dtype = _COMPLEX.get(input.dtype)
    if dtype is None:
        raise DTypeError(
            f"[view_as_complex] expects float32 or float64, got {input.dtype}; convert it first"
        )
    strides = input.stride()
    pairs = zip(input.shape[:-1], strides, strict=False)
    aligned = strides[-1:] == (1,) and not any(s % 2 for size, s in pairs if size != 1)
    if input.shape[-1:] != (2,) or (input.numel() and (not aligned or input.storage_offset() % 2)):
        raise ShapeError(
            f"[view_as_complex] expects a last dimension of size 2 and stride 1 with even other "
            f"strides and offset, got shape {input.shape} and strides {strides}; use contiguous()"
        )
    return apply(_as_complex, (input,), (dtype,))


# Out of two real tensors ---------------------------------------------------------------------
def _complex_forward(k: Forms, real: Array, imag: Array, shape: Shape, dtype: DType) -> Any:
    out = k.empty(shape, dtype.numpy)
    k.assign(k.part(out, "real"), real)
    k.assign(k.part(out, "imag"), imag)
    return out


_complex = Op(
    "complex",
    _complex_forward,
    inputs="real imag",
    params="shape dtype",
    vjp={
        "real": lambda g, real_shape: sum_to(real(g), real_shape),
        "imag": lambda g, imag_shape: sum_to(imag(g), imag_shape),
    },
    conjugate=False,
)


@function(method=False, name="complex")
def complex_(real: Tensor, imag: Tensor) -> Tensor:
    """Complex numbers from real and imaginary parts of one floating dtype.

    >>> import undertow as ut
    >>> ut.complex(ut.tensor([1.0, 2.0]), ut.tensor([3.0, -4.0]))
    tensor([1.+3.j, 2.-4.j])
    """
    dtype = _of_parts("complex", real, imag)
    shape = broadcast_shapes("complex", real.shape, imag.shape)
    return apply(_complex, (real, imag), (shape, dtype))


@function(method=False)
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Complex numbers from absolute values and angles of one floating dtype.

    >>> import undertow as ut
    >>> ut.polar(ut.tensor([2.0]), ut.tensor([0.0]))
    tensor([2.+0.j])
    """
    _of_parts("polar", abs, angle)
    return complex_(abs * angle.cos(), abs * angle.sin())


def _of_parts(op: str, first: Tensor, second: Tensor) -> DType:
    """The complex dtype of two real tensors."""
    if first.dtype is not second.dtype or first.dtype not in _COMPLEX:
        raise DTypeError(
            f"[{op}] expects two tensors of float32 or of float64, got {first.dtype} and "
            f"{second.dtype}"
        )
    return dtypes.complex_of(first.dtype)


# Size and direction --------------------------------------------------------------------------
def _along_circle(g: Tensor, x: Tensor, out: Tensor) -> Tensor:
    """What of `g` is across the direction `out`, by the size; zero at zero, where there is none."""
    size = complex_abs(x)
    across = g - out * real(g * conjugate(out))
    return where(size == 0, 0, across / where(size == 0, 1, size))


complex_sign = elementwise_op(
    "complex_sign",
    lambda x: x / choose(call("eq", x, 0), 1, call("abs", x)),
    inputs="x",
    domain="c",
    vjp={"x": _along_circle},
    conjugate=False,
)
complex_abs_op = elementwise_op(
    "complex_abs",
    lambda x: call("abs", x),
    inputs="x",
    kind="real",
    domain="c",
    vjp={"x": lambda g, x: cast(g, x.dtype) * elementwise(complex_sign, x)},
)


def complex_abs(x: Tensor) -> Tensor:
    """The absolute values of complex numbers."""
    return elementwise(complex_abs_op, x)


def _turned(g: Tensor, x: Tensor) -> Tensor:
    """A quarter turn from x, divided by its squared size; zero at zero."""
    size = complex_abs(x)
    turned = elementwise(complex_sign, x) * 1j / where(size == 0, 1, size)
    return cast(g, x.dtype) * turned


_complex_angle = elementwise_op(
    "complex_angle",
    lambda x: call("angle", x),
    inputs="x",
    kind="real",
    domain="c",
    vjp={"x": _turned},
)
_real_angle = elementwise_op(
    "angle",
    lambda x: choose(x != x, x, choose(x < 0, math.pi, 0)),
    inputs="x",
    kind="float",
    domain="f",
    vjp={"x": lambda g: zeros_of(g)},
)


@function()
def angle(input: Tensor) -> Tensor:
    """The angle of complex numbers in radians; of real ones, pi where they are negative, else 0.

    The derivative at zero is zero.

    >>> import undertow as ut
    >>> ut.angle(ut.tensor([1j, -1.0]))
    tensor([1.5708, 3.1416])
    """
    return elementwise(_complex_angle if input.is_complex() else _real_angle, input)


@function(inplace=True)
def conj_physical(input: Tensor) -> Tensor:
    """Complex conjugates, as a copy; a real tensor is returned as it is.

    >>> import undertow as ut
    >>> ut.conj_physical(ut.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return apply(conj_op, (input,)) if input.is_complex() else input
