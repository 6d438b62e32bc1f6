"""Sparse tensors: dense tensors of positions and of values, and the shape that they stand in.

Note [sparse tensors]
A sparse tensor is not a Tensor: it holds Tensors, and what is done to it is done to them. So the
history is that of the values, a leaf is one whose values are a leaf, and its gradient has the
positions of the tensor itself and the gradient of its values: positions that are not stored are
constants. What is not defined for sparse tensors is an error that names it.
"""

from __future__ import annotations

import builtins
import math
from importlib import import_module
from typing import Any

from .. import dtypes
from ..core.node import Node
from ..core.other_kinds import OtherKind
from ..core.printing import closed, elements
from ..core.tensor import Tensor
from ..devices import Device
from ..dtypes import DType
from ..errors import DimError, UnsupportedError
from ..layouts import layout as Layout
from ..shapes import SIZES, Size


def elementwise() -> Any:
    """The file that knows every layout, which is above this one."""
    return import_module("undertow.sparse.elementwise")


class SparseTensor(OtherKind):
    """What the layouts have in common; see Note [sparse tensors].

    Made by `ut.sparse_coo_tensor`, `ut.sparse_csr_tensor`, `ut.sparse_csc_tensor` and
    `Tensor.to_sparse`.
    """

    __slots__ = ("_stored", "shape")

    __array_priority__ = 2000
    layout: Layout
    _stored: Tensor
    shape: Size

    def __init__(self, values: Tensor, shape: Any) -> None:
        self._stored = values
        self.shape = SIZES[tuple(shape)]

    # What it is ---------------------------------------------------------------------------
    @property
    def ndim(self) -> int:
        """The number of its dimensions."""
        return len(self.shape)

    def dim(self) -> int:
        """The number of its dimensions."""
        return len(self.shape)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of one dimension."""
        return self.shape if dim is None else self.shape[dim]

    def __len__(self) -> int:
        if not self.shape:
            raise DimError("[len] a tensor of 0 dimensions has no length")
        return self.shape[0]

    def __bool__(self) -> builtins.bool:
        raise self._undefined("bool", "has no truth value")

    def is_same_size(self, other: Any) -> builtins.bool:
        """Whether another tensor has the same shape."""
        return tuple(self.shape) == tuple(other.shape)

    def numel(self) -> int:
        """The number of its elements, stored or not."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> DType:
        """The dtype of its values."""
        return self._stored.dtype

    @property
    def device(self) -> Device:
        """Where it lives."""
        return self._stored.device

    @property
    def is_sparse(self) -> builtins.bool:
        """Whether it is stored as coordinates."""
        return self.layout.name == "sparse_coo"

    @property
    def is_sparse_csr(self) -> builtins.bool:
        """Whether it is stored by rows."""
        return self.layout.name == "sparse_csr"

    def is_floating_point(self) -> builtins.bool:
        """Whether its dtype is a floating one."""
        return self.dtype.is_floating_point

    def is_complex(self) -> builtins.bool:
        """Whether its dtype is a complex one."""
        return self.dtype.is_complex

    def _nnz(self) -> int:
        return self._stored.shape[0]

    # Its place in the graph, which is that of the values ----------------------------------
    @property
    def requires_grad(self) -> builtins.bool:
        """Whether gradients are computed for its values; settable on leaves."""
        return self._stored.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: builtins.bool) -> None:
        self._stored.requires_grad_(value)

    def requires_grad_(self, requires_grad: builtins.bool = True) -> Any:
        """Switch gradients on or off for this leaf; returns itself."""
        self._stored.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self) -> builtins.bool:
        """Whether no recorded operation made its values."""
        return self._stored.is_leaf

    @property
    def grad_fn(self) -> Node | None:
        """The node that made its values."""
        return self._stored.grad_fn

    @property
    def grad(self) -> Any:
        """The gradient of its values, at the same positions."""
        return None if self._stored.grad is None else self._with(self._stored.grad)

    @grad.setter
    def grad(self, value: Any) -> None:
        self._stored.grad = None if value is None else value._stored

    # Others like it -----------------------------------------------------------------------
    def _with(self, values: Tensor) -> Any:
        """The same positions with other values."""
        raise NotImplementedError

    def detach(self) -> Any:
        """The same without history."""
        return self._with(self._stored.detach())

    def detach_(self) -> Any:
        """Forget its history."""
        self._stored = self._stored.detach()
        return self

    def clone(self) -> Any:
        """A copy of its values at the same positions."""
        return self._with(self._stored.clone())

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Its values in another dtype."""
        found = self._stored.to(*args, **kwargs)
        if found.device != self.device:
            raise UnsupportedError(
                f"[to] a {self.layout.name} tensor stays on {self.device}; make it anew on "
                f"{found.device}, from its parts"
            )
        return self if found is self._stored else self._with(found)

    def float(self) -> Any:
        """In float32."""
        return self.to(dtypes.float32)

    def double(self) -> Any:
        """In float64."""
        return self.to(dtypes.float64)

    def bool(self) -> Any:
        """Whether each element is not zero."""
        return self._summed().to(dtypes.bool)

    def _like(self, found: Any) -> Any:
        """A tensor by coordinates in the layout of this one."""
        return found.to_sparse(layout=self.layout)

    def add(self, other: Any, *, alpha: Any = 1) -> Any:
        """The sum with another tensor: sparse if that is."""
        return elementwise().add(self, other, alpha)

    def sub(self, other: Any, *, alpha: Any = 1) -> Any:
        """The difference from another tensor: sparse if that is."""
        return elementwise().add(self, other, -alpha)

    def mul(self, other: Any) -> Any:
        """The product with a number or a tensor: sparse."""
        return elementwise().mul(self, other)

    def div(self, other: Any) -> Any:
        """The quotient by a number."""
        return elementwise().div(self, other)

    def __neg__(self) -> Any:
        return self._with(-self._stored)

    __add__, __sub__, __mul__, __truediv__ = add, sub, mul, div
    __rmul__ = mul

    def __radd__(self, other: Any) -> Any:
        return elementwise().add(other, self)

    def conj(self) -> Any:
        """Complex conjugates."""
        return self._with(self._stored.conj())

    def pow(self, exponent: Any) -> Any:
        """A power of each element, which is positive lest zeros change."""
        if isinstance(exponent, (Tensor, SparseTensor)) or not exponent > 0:
            raise self._undefined("pow", f"is raised to positive numbers, got {exponent!r}")
        once = self._summed()
        return once._with(once._stored**exponent)

    __pow__ = pow

    def norm(self, p: Any = "fro", dim: Any = None, keepdim: Any = False, dtype: Any = None) -> Any:
        """The norm of all elements, over those that are stored."""
        if dim is not None or keepdim:
            raise self._undefined("norm", f"has a norm of all elements, got dim={dim}")
        return self._summed()._stored.norm(p, dtype=dtype)

    def any(self) -> Any:
        """Whether an element is not zero."""
        return self._summed()._stored.any()

    def _summed(self) -> Any:
        """The same with each position once."""
        return self

    def sum(self, dim: Any = None, dtype: Any = None) -> Any:
        """The sum of all elements, or over some dimensions: `sparse.sum`."""
        return import_module("undertow.sparse").sum(self, dim, dtype)

    def _answer(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if name in ("add", "sub", "mul", "div"):
            if name == "sub":
                a, b = args
                return elementwise().add(a, b, -kwargs.get("alpha", 1))
            return getattr(elementwise(), name)(*args, **kwargs)
        if name in ("sparse_mask", "smm", "sspaddmm", "hspmm"):
            return getattr(import_module("undertow.sparse"), name)(*args, **kwargs)
        if name in ("cat", "concat", "concatenate", "stack", "zeros_like"):
            name = "cat" if name.startswith("con") else name
            return getattr(import_module("undertow.sparse.movement"), name)(*args, **kwargs)
        return super()._answer(name, args, kwargs)

    def __matmul__(self, other: Any) -> Any:
        from .products import matmul

        return matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        from .products import matmul

        return matmul(other, self)

    def mm(self, mat2: Any) -> Any:
        """The product of two matrices."""
        return self @ mat2

    matmul = mm

    def mv(self, vec: Tensor) -> Any:
        """The product with a vector."""
        return self @ vec

    def _undefined(self, what: str, but: str = "has no such operation") -> UnsupportedError:
        return UnsupportedError(
            f"[{what}] a {self.layout.name} tensor {but}; use to_dense() for a dense one"
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(Tensor, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise self._undefined(name)

    # Printing -----------------------------------------------------------------------------
    def _parts(self) -> list[tuple[str, Tensor]]:
        raise NotImplementedError

    def __repr__(self) -> str:
        facts = [f"size={tuple(self.shape)}", f"nnz={self._nnz()}"]
        inferred = (dtypes.get_default_dtype(), dtypes.int64, dtypes.bool)
        if self.dtype not in (*inferred, dtypes.complex_of(inferred[0])):
            facts.append(f"dtype={self.dtype!r}")
        facts.append(f"layout={self.layout!r}")
        if self.grad_fn is not None:
            facts.append(f"grad_fn=<{self.grad_fn.name()}>")
        elif self.requires_grad:
            facts.append("requires_grad=True")
        indent = len("tensor(")
        parts = []
        for name, part in self._parts():
            size = [] if part.numel() else [f"size={tuple(part.shape)}"]
            text = closed(elements(part, " " * indent + f"{name}=tensor("), size, 0)
            parts.append(text.lstrip())
        text = "tensor(" + (",\n" + " " * indent).join(parts)
        return closed(text, facts, indent, below=self.is_sparse)
