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
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

from .. import dtypes
from ..core.modes import current
from ..core.node import Node
from ..core.other_kinds import OtherKind
from ..core.printing import closed, elements
from ..core.tensor import Tensor
from ..devices import Device
from ..dtypes import DType
from ..errors import (
    ArgumentError,
    DimError,
    DTypeError,
    GradientError,
    InplaceError,
    ShapeError,
    UnsupportedError,
)
from ..layouts import layout as Layout
from ..ops.index.selection import index_put
from ..shapes import SIZES, Size


def elementwise() -> Any:
    """The file that knows every layout, which is above this one."""
    return import_module("undertow.sparse.elementwise")


_ANSWERS: dict[str, Callable[..., Any]] = {}


def answers() -> dict[str, Callable[..., Any]]:
    """The functions of sparse tensors, by name: those of every file above this one."""
    if not _ANSWERS:
        for room in ("creation", "elementwise", "movement", "products", "reductions"):
            _ANSWERS.update(import_module(f"undertow.sparse.{room}").ANSWERS)
    return _ANSWERS


# What is known of a sparse tensor by its values.
_FACTS = frozenset(
    """
    element_size get_device is_cpu is_cuda is_inference is_ipu is_maia is_meta is_mkldnn is_mps
    is_mtia is_nested is_pinned is_quantized is_shared is_signed is_vulkan is_xla is_xpu itemsize
    output_nr retains_grad is_conj is_neg is_distributed
    """.split()  # noqa: SIM905
)
_DTYPES = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
    "cfloat": "complex64",
    "cdouble": "complex128",
}


class SparseTensor(OtherKind):
    """What the layouts have in common; see Note [sparse tensors].

    Made by `ut.sparse_coo_tensor`, `ut.sparse_csr_tensor`, `ut.sparse_csc_tensor` and
    `Tensor.to_sparse`.

    >>> import undertow as ut
    >>> s = ut.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
    >>> isinstance(s, ut.sparse.SparseTensor), isinstance(s, ut.Tensor)
    (True, False)
    """

    __slots__ = ("__weakref__", "_owner", "_stored", "shape")

    __array_priority__ = 2000
    layout: Layout
    _stored: Tensor
    shape: Size

    def __init__(self, values: Tensor, shape: Any) -> None:
        self._stored = values
        self._owner: SparseTensor | None = None  # whose gradient it is
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

    def stride(self, dim: int | None = None) -> Any:
        """An error: nothing tells where the next element stands."""
        raise self._undefined("stride", "has no strides")

    def numel(self) -> int:
        """The number of its elements, stored or not."""
        return math.prod(self.shape)

    def ndimension(self) -> int:
        """The number of its dimensions."""
        return len(self.shape)

    nelement = numel

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
        if self._stored.grad is None:
            return None
        found = self._gradient(self._stored.grad)
        found._owner = self
        return found

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None and not (isinstance(value, SparseTensor) and value._same_places(self)):
            raise ArgumentError(
                "[grad] the gradient of a sparse tensor has its layout and positions; "
                "sparse_mask() gives a tensor those of another one"
            )
        self._stored.grad = None if value is None else value._stored

    def _gradient(self, values: Tensor) -> Any:
        """The gradient, given that of the values."""
        return self._with(values)

    def _same_places(self, other: SparseTensor) -> builtins.bool:
        """Whether it stores the same positions as another one, in the same order."""
        mine, others = self._parts()[:-1], other._parts()[:-1]
        return (
            self.layout is other.layout
            and tuple(self.shape) == tuple(other.shape)
            and all(a is b or a.equal(b) for (_, a), (_, b) in zip(mine, others, strict=True))
        )

    def backward(
        self,
        gradient: Any = None,
        retain_graph: builtins.bool | None = None,
        create_graph: builtins.bool = False,
        inputs: Any = None,
    ) -> None:
        """Send a gradient of the shape of this tensor, sparse or dense, back to the leaves."""
        seed = None if gradient is None else self._seed(gradient)
        self._stored.backward(seed, retain_graph, create_graph, inputs)

    def _differentiated(self, op: str) -> Tensor:
        return self._stored

    def _seed(self, gradient: Any) -> Tensor:
        """The elements of a gradient of this shape, sparse or dense, at the stored positions."""
        found: Tensor = import_module("undertow.sparse").sparse_mask(gradient, self)._stored
        return found

    def register_hook(self, hook: Callable[[Any], Any]) -> Any:
        """Call `hook(grad)` in each backward with the gradient at these positions."""

        def of_values(gradient: Tensor) -> Tensor | None:
            found = hook(self._with(gradient))
            return None if found is None else found._stored

        return self._stored.register_hook(of_values)

    def retain_grad(self) -> None:
        """Keep the gradient, though it is no leaf."""
        self._stored.retain_grad()

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

    @property
    def data(self) -> Any:
        """The same without history."""
        return self.detach()

    def clone(self, *, memory_format: Any = None) -> Any:
        """A copy of its values at the same positions."""
        return self._with(self._stored.clone())

    def contiguous(self, memory_format: Any = None) -> Any:
        """The tensor itself: no order of its elements is another one."""
        return self

    def is_contiguous(self, memory_format: Any = None) -> builtins.bool:
        """True: it may be given where that is asked for."""
        return True

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Its values in another dtype."""
        found = self._stored.to(*args, **kwargs)
        if found.device != self.device:
            raise UnsupportedError(
                f"[to] a {self.layout.name} tensor stays on {self.device}; make it anew on "
                f"{found.device}, from its parts"
            )
        return self if found is self._stored else self._with(found)

    def type(self, dtype: Any = None) -> Any:
        """Its type by torch's name, or its values in another dtype."""
        if dtype is None:
            room = f"torch.sparse.{self._stored.type().removeprefix('torch.')}"
            return room if self.is_sparse else self._stored.type()
        return self.to(dtype)

    def type_as(self, other: Any) -> Any:
        """In the dtype of another tensor."""
        return self.to(other.dtype)

    def cpu(self) -> Any:
        """Itself on the CPU."""
        return self.to("cpu")

    def bool(self) -> Any:
        """Whether each element is not zero."""
        return self._summed().to(dtypes.bool)

    def to_sparse(
        self,
        sparse_dim: int | None = None,
        *,
        layout: Layout | None = None,
        blocksize: Any = None,
        dense_dim: int | None = None,
    ) -> Any:
        """The same by coordinates, or in another layout; itself if it has that."""
        counts = ((sparse_dim, self.sparse_dim()), (dense_dim, self.dense_dim()))
        if any(wanted not in (None, has) for wanted, has in counts):
            raise self._undefined("to_sparse", f"has sparse and dense dimensions {counts}")
        from .compressed import in_layout

        return in_layout(self, layout, blocksize)

    def to_dense(self, dtype: Any = None, *, masked_grad: builtins.bool | None = None) -> Tensor:
        """The dense tensor, zero where nothing is stored."""
        at = self._at()
        if not at:
            dense = self._stored.sum(0, dtype=self.dtype)
        else:
            dense = index_put(self._stored.new_zeros(self.shape), at, self._stored, accumulate=True)
        return dense if dtype is None else dense.to(dtype)

    def _at(self) -> tuple[Tensor, ...]:
        """Indices for all dimensions but dense ones; together they have the shape of the values."""
        raise NotImplementedError

    def _beside(self, dense: Tensor) -> Tensor:
        """The elements of a dense tensor of this shape at the positions that are stored."""
        at = self._at()
        if at:
            return dense[at]
        return dense.unsqueeze(0).expand(self._stored.shape)

    def _like(self, found: Any) -> Any:
        """A tensor by coordinates in the layout of this one."""
        block = getattr(self, "_block", None)
        return found.to_sparse(layout=self.layout, blocksize=block)

    # In place -----------------------------------------------------------------------------
    def _become(self, op: str, found: Any) -> Any:
        """Hold what an operation gave.

        By coordinates nobody else sees that, as in torch; by rows and columns, and in a gradient,
        the values change in their memory.
        """
        if not isinstance(found, SparseTensor) or found.shape != self.shape:
            raise ShapeError(
                f"[{op}] the result has shape {tuple(found.shape)} and is "
                f"{found.layout.name}; a {self.layout.name} tensor of shape {tuple(self.shape)} "
                f"cannot hold it"
            )
        if found.dtype.category > self.dtype.category:
            raise DTypeError(f"[{op}] a {self.dtype} tensor cannot hold a result of {found.dtype}")
        if self.requires_grad and self.is_leaf and current().grad:
            raise InplaceError(
                f"[{op}] a leaf that requires gradients cannot be changed in place; use no_grad()"
            )
        if found._places is self._places and (not self.is_sparse or self._owner is not None):
            self._stored.copy_(found._stored)
            return self
        if self._owner is not None:
            raise self._undefined(op, "that is a gradient keeps its positions")
        self._hold(self._like(found.to(self.dtype)))
        return self

    def _hold(self, found: Any) -> None:
        """Take over the parts of another tensor of this layout."""
        for name in ("_stored", "_places", "_coalesced", "shape"):
            if hasattr(type(self), name):
                setattr(self, name, getattr(found, name))

    def _receive(self, op: str, found: Any) -> Any:
        """Take what a function gave that was called with this tensor for `out`."""
        if current().grad and (self.requires_grad or getattr(found, "requires_grad", False)):
            raise GradientError(
                f"[{op}] functions with out=... arguments don't support automatic differentiation; "
                f"leave out= away, or compute under no_grad()"
            )
        if not isinstance(found, SparseTensor):
            found = found.to_sparse(layout=self.layout, blocksize=getattr(self, "_block", None))
        if found.dtype.category > self.dtype.category:
            raise DTypeError(f"[{op}] a {self.dtype} tensor cannot hold a result of {found.dtype}")
        self._hold(self._like(found.to(self.dtype)))
        return self

    def t_(self) -> Any:
        """Rows and columns exchanged in place."""
        return self.transpose_(0, 1) if self.ndim == 2 else self._turn("t_", self.t())

    def transpose_(self, dim0: int, dim1: int) -> Any:
        """Two sparse dimensions exchanged in place."""
        return self._turn("transpose_", self.transpose(dim0, dim1))

    def _turn(self, op: str, found: Any) -> Any:
        if found.layout is not self.layout or self._owner is not None:
            raise self._undefined(op, "keeps its dimensions")
        if self.requires_grad and self.is_leaf and current().grad:
            raise InplaceError(f"[{op}] a leaf that requires gradients cannot be changed in place")
        self._hold(found)
        return self

    def zero_(self) -> Any:
        """Forget all elements: in place, and without a history."""
        if self.requires_grad and self.is_leaf and current().grad:
            raise InplaceError("[zero_] a leaf that requires gradients cannot be changed in place")
        if self._owner is None:
            self._drop()
        else:
            self._stored.detach().zero_()
        return self

    def _drop(self) -> None:
        """Make all elements zero, without a history."""
        self._stored.detach().zero_()
        self._stored = self._stored.detach()

    def copy_(self, src: Any, non_blocking: builtins.bool = False) -> Any:
        """Take the elements of another tensor of this shape."""
        if not isinstance(src, SparseTensor):
            raise self._undefined("copy_", "takes the elements of sparse tensors")
        return self._become("copy_", src.to(self.dtype))

    # Arithmetic ---------------------------------------------------------------------------
    def __neg__(self) -> Any:
        return self._with(-self._stored)

    def __add__(self, other: Any) -> Any:
        return elementwise().add(self, other)

    def __radd__(self, other: Any) -> Any:
        return elementwise().add(other, self)

    def __sub__(self, other: Any) -> Any:
        return elementwise().sub(self, other)

    def __rsub__(self, other: Any) -> Any:
        return elementwise().sub(other, self)

    def __mul__(self, other: Any) -> Any:
        return elementwise().mul(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return elementwise().div(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return elementwise().div(other, self)

    def __floordiv__(self, other: Any) -> Any:
        return elementwise().div(self, other, rounding_mode="floor")

    def __rfloordiv__(self, other: Any) -> Any:
        return elementwise().div(other, self)

    def __pow__(self, exponent: Any) -> Any:
        return elementwise().pow(self, exponent)

    def __abs__(self) -> Any:
        return self.abs()

    def __iadd__(self, other: Any) -> Any:
        return self._change("add_", other)

    def __isub__(self, other: Any) -> Any:
        return self._change("sub_", other)

    def __imul__(self, other: Any) -> Any:
        return self._change("mul_", other)

    def __itruediv__(self, other: Any) -> Any:
        return self._change("div_", other)

    def conj(self) -> Any:
        """Complex conjugates."""
        return self._with(self._stored.conj())

    def _summed(self) -> Any:
        """The same with each position once."""
        return self

    def __getitem__(self, key: Any) -> Any:
        return import_module("undertow.sparse.movement").item(self, key)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def _answer(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        found = answers().get(name)
        if found is not None:
            return found(*args, **kwargs)
        return super()._answer(name, args, kwargs)

    def __matmul__(self, other: Any) -> Any:
        from .products import matmul

        return matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        from .products import matmul

        return matmul(other, self)

    def _undefined(self, what: str, but: str = "has no such operation") -> UnsupportedError:
        return UnsupportedError(
            f"[{what}] a {self.layout.name} tensor {but}; use to_dense() for a dense one"
        )

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            found = answers().get(name)
            if found is not None:
                return partial(found, self)
            if name in _FACTS:
                return getattr(self._stored, name)
            if name in _DTYPES:
                return partial(self.to, getattr(dtypes, _DTYPES[name]))
            if name.endswith("_") and name[:-1] in elementwise().IN_PLACE:
                return partial(self._change, name)
            if hasattr(Tensor, name):
                raise self._undefined(name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _change(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """What an operation gives, in place of this."""
        return self._become(name, getattr(self, name[:-1])(*args, **kwargs))

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
