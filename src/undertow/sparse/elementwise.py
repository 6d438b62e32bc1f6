"""Sparse tensors element by element: functions that keep zeros, sums and products of two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.register import FUNCTIONS
from ..core.tensor import Tensor
from ..errors import ShapeError
from ..ops.joining import cat
from ..ops.scatter import index_select
from ..ops.sort import searchsorted
from .coo import SparseCOO
from .tensor import SparseTensor

# f(0) = 0, so that they are functions of what is stored.
KEEPING_ZERO = """
abs absolute angle arcsin arcsinh arctan arctanh asin asinh atan atanh ceil conj_physical deg2rad
erf erfinv expm1 fix floor frac isinf isnan isneginf isposinf log1p nan_to_num neg negative positive
rad2deg relu round sgn sign signbit sin sinh sqrt square tan tanh trunc
""".split()  # noqa: SIM905


def _keeping(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        stored = self._summed()
        return stored._with(FUNCTIONS[name](stored._stored, *args, **kwargs))

    method.__name__ = name
    method.__doc__ = f"`Tensor.{name}` of the elements that are stored; the others stay zero."
    return method


for _name in KEEPING_ZERO:
    setattr(SparseTensor, _name, _keeping(_name))


def add(a: Any, b: Any, alpha: Any = 1) -> Any:
    """`a + alpha * b`: sparse if both are, else dense."""
    if not isinstance(b, (Tensor, SparseTensor)):
        raise a._undefined("+", "is added to tensors, since a number has no zeros")
    b = b if alpha == 1 else b * alpha
    if a.shape != b.shape and isinstance(a, SparseTensor) and isinstance(b, SparseTensor):
        raise ShapeError(
            f"[+] sparse tensors do not broadcast: {tuple(a.shape)} + {tuple(b.shape)}"
        )
    if isinstance(a, Tensor):
        return a + b.to_dense()
    if isinstance(b, Tensor):
        return a.to_dense() + b
    left, right = a.to_sparse_coo(), b.to_sparse_coo()
    if left.sparse_dim() != right.sparse_dim():
        raise a._undefined("+", "is added to one with as many sparse dimensions")
    places = cat([left._places, right._places], 1)
    values = cat([left._stored, right._stored])
    return a._like(SparseCOO(places, values, a.shape, False).coalesce())


def mul(a: Any, b: Any) -> Any:
    """The product of a sparse tensor with a number, a dense tensor or a sparse one: sparse."""
    if not isinstance(a, SparseTensor):
        a, b = b, a
    if not isinstance(b, (Tensor, SparseTensor)) or (isinstance(b, Tensor) and not b.ndim):
        return a._with(a._stored * b)
    if isinstance(b, Tensor):
        stored = a.to_sparse_coo().coalesce()
        dense = b.expand(a.shape)
        beside = dense[tuple(stored._places.unbind(0))]
        return a._like(stored._with(stored._stored * beside))
    return a._like(_common(a.to_sparse_coo().coalesce(), b.to_sparse_coo().coalesce()))


def _common(a: SparseCOO, b: SparseCOO) -> SparseCOO:
    """The product of two at the coordinates that both have."""
    if a.shape != b.shape or a.sparse_dim() != b.sparse_dim():
        raise ShapeError(
            f"[*] sparse tensors do not broadcast: {tuple(a.shape)} * {tuple(b.shape)}"
        )
    dims = range(a.sparse_dim())
    here, there = a._linear(dims), b._linear(dims)
    if not there.shape[0]:
        here = here[:0]
    at = searchsorted(there, here).clamp(max=max(there.shape[0] - 1, 0))
    which = (index_select(there, 0, at) == here).nonzero().squeeze(1)
    at = index_select(at, 0, which)
    values = index_select(a._stored, 0, which) * index_select(b._stored, 0, at)
    return SparseCOO(index_select(a._places, 1, which), values, a.shape, True)


def div(a: Any, b: Any) -> Any:
    """A sparse tensor divided by a number, or a tensor of one."""
    if not isinstance(a, SparseTensor):
        raise b._undefined("/", "divides nothing: most of it is zero")
    if isinstance(b, SparseTensor) or (isinstance(b, Tensor) and b.ndim):
        raise a._undefined("/", "is divided by numbers")
    return a._with(a._stored / b)
