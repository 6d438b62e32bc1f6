"""`NestedTensor`: the values of all parts as one tensor, and where each part ends.

Like sparse and masked tensors it holds Tensors and is none: functions that are called with one ask
it (core/other_kinds). What is done to elements is done to the values; what a function would need
the whole shape for is refused. Gradients go through the values, of any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from ..core.other_kinds import OtherKind
from ..core.register import FUNCTIONS
from ..core.tensor import Tensor
from ..devices import Device
from ..dtypes import DType
from ..errors import ArgumentError, DimError, UnsupportedError
from ..layouts import jagged


def ends_of(lengths: list[int], like: Tensor) -> Tensor:
    """Where parts of these lengths begin and end, one behind the other."""
    ends = [0]
    for n in lengths:
        ends.append(ends[-1] + n)
    return FUNCTIONS["tensor"](ends, dtype="int64", device=like.device)


class NestedInt(int):
    """The size that differs from part to part: -1 for functions, and equal to itself alone."""

    _count = 0
    _number: int

    def __new__(cls) -> NestedInt:
        found = super().__new__(cls, -1)
        NestedInt._count += 1
        found._number = NestedInt._count
        return found

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"j{self._number}"

    def __gt__(self, other: Any) -> bool:  # as in torch: it may be any size from 2 on
        return self is not other and (other < 2 or bool(self._refuse()))

    def __ge__(self, other: Any) -> bool:
        return self is other or other <= 2 or bool(self._refuse())

    def __lt__(self, other: Any) -> bool:
        return not self >= other

    def __le__(self, other: Any) -> bool:
        return not self > other

    def _refuse(self, *_: Any) -> Any:
        raise ArgumentError(f"[{self!r}] a size that differs from part to part is no number")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __neg__ = _refuse


class NestedTensor(OtherKind):
    """Tensors that differ in one size, as a batch.

    >>> import undertow as ut
    >>> x = ut.nested.nested_tensor([ut.ones(1, 2), ut.ones(3, 2)], layout=ut.jagged)
    >>> x.shape[0], x.shape[2], x.values().shape, x.offsets().tolist()
    (2, 2, (4, 2), [0, 1, 4])
    >>> ut.nn.functional.linear(x, ut.ones(5, 2)).sum(dim=1).shape
    (2, 5)
    """

    __slots__ = ("_list", "_offsets", "_ragged", "_size", "_values", "layout")
    __array_priority__ = 2000
    __hash__ = object.__hash__
    is_nested = True
    is_sparse = False

    def __init__(
        self, values: Tensor, offsets: Tensor, ragged: int, layout: Any, size: Any = None
    ) -> None:
        self._values, self._offsets, self._ragged, self.layout = values, offsets, ragged, layout
        self._list: list[int] = offsets.tolist()
        self._size = NestedInt() if size is None else size

    def _with(self, values: Tensor, ragged: int | None = None) -> NestedTensor:
        """The same parts with other values."""
        place = self._ragged if ragged is None else ragged
        return NestedTensor(values, self._offsets, place, self.layout, self._size)

    def _lengths(self) -> list[int]:
        return [b - a for a, b in zip(self._list, self._list[1:], strict=False)]

    # What it is -------------------------------------------------------------------------------
    def values(self) -> Tensor:
        """The elements of all parts, one behind the other."""
        return self._values

    def offsets(self) -> Tensor:
        """Where each part begins; the last one is where the last part ends."""
        return self._offsets

    def lengths(self) -> Tensor | None:
        """None: parts lie one behind the other."""
        return None

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes, of which one differs from part to part."""
        inner: list[Any] = list(self._values.shape)
        inner[self._ragged - 1] = self._size
        return (len(self), *inner)

    @property
    def ndim(self) -> int:
        """The number of dimensions, the batch included."""
        return self._values.ndim + 1

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self._values.dtype

    @property
    def device(self) -> Device:
        """Where it lives."""
        return self._values.device

    def dim(self) -> int:
        """The number of dimensions, the batch included."""
        return self.ndim

    def size(self, dim: int | None = None) -> Any:
        """The shape, or one size; the one that differs has none with the layout strided."""
        if dim is None:
            return self.shape
        found = self.shape[self._dim("size", dim)]
        if found is self._size and self.layout is not jagged:
            raise ArgumentError(f"[size] dimension {dim} is irregular and does not have a size")
        return found

    def numel(self) -> int:
        """The number of elements of all parts."""
        return self._values.numel()

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the parts lie one behind the other in memory."""
        return self._ragged == 1 and self._values.is_contiguous()

    def is_floating_point(self) -> bool:
        """Whether the dtype is a floating one."""
        return self._values.is_floating_point()

    def is_complex(self) -> bool:
        """Whether the dtype is a complex one."""
        return self._values.is_complex()

    def element_size(self) -> int:
        """The bytes of an element."""
        return self._values.element_size()

    def __len__(self) -> int:
        return len(self._list) - 1

    @property
    def _ragged_idx(self) -> int:
        return self._ragged

    def _get_max_seqlen(self) -> int:
        return max(self._lengths(), default=0)

    def _get_min_seqlen(self) -> int:
        return min(self._lengths(), default=0)

    # Parts ------------------------------------------------------------------------------------
    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """The parts, as views of the values."""
        if dim != 0:
            raise DimError(f"[unbind] a nested tensor is taken apart along dim 0, got {dim}")
        at = self._ragged - 1
        pairs = zip(self._list, self._lengths(), strict=False)
        return tuple(self._values.narrow(at, a, n) for a, n in pairs)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.unbind())

    def __getitem__(self, index: Any) -> Any:
        first, *rest = index if isinstance(index, tuple) else (index,)
        if isinstance(first, int):
            part = self.unbind()[first]
            return part[tuple(rest)] if rest else part
        if first is Ellipsis and len(rest) == 1 and self._ragged != self._values.ndim:
            return self._with(self._values[..., rest[0]])
        raise UnsupportedError(
            f"[index] a nested tensor is indexed by the number of a part first, got {index!r}"
        )

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Tensor:
        """One tensor of all parts, the shorter ones filled up with `padding`."""
        at = self._ragged - 1
        lengths = self._lengths()
        rows = self._values.movedim(at, 0)
        most = max(lengths, default=0)
        padded = FUNCTIONS["full"](
            (len(self) * most, *rows.shape[1:]), padding, dtype=self.dtype, device=self.device
        )
        places = [i * most + j for i, n in enumerate(lengths) for j in range(n)]
        where = FUNCTIONS["tensor"](places, dtype="int64", device=self.device)
        found = padded.index_copy(0, where, rows).reshape(len(self), most, *rows.shape[1:])
        found = found.movedim(1, self._ragged)
        if output_size is None or tuple(output_size) == tuple(found.shape):
            return found
        whole = found.new_full(tuple(output_size), padding)
        whole[tuple(slice(n) for n in found.shape)] = found
        return whole

    def _dim(self, op: str, dim: int) -> int:
        if not -self.ndim <= dim < self.ndim:
            raise DimError(f"[{op}] dim {dim} is not among the {self.ndim} dimensions")
        return dim % self.ndim

    # Its place in the graph, which is that of the values ----------------------------------------
    @property
    def requires_grad(self) -> bool:
        """Whether gradients are computed for its values; settable on leaves."""
        return self._values.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._values.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> NestedTensor:
        """Switch gradients of the values on or off; returns itself."""
        self._values.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made its values."""
        return self._values.is_leaf

    @property
    def grad_fn(self) -> Any:
        """The node that made its values."""
        return self._values.grad_fn

    @property
    def grad(self) -> Any:
        """The gradient of its values, in the same parts."""
        found = self._values.grad
        return None if found is None else self._with(found)

    @grad.setter
    def grad(self, value: Any) -> None:
        self._values.grad = None if value is None else self._seed(value)

    def backward(self, gradient: Any = None, *args: Any, **kwargs: Any) -> None:
        """The backward pass from its values; a gradient is nested, too."""
        seed = None if gradient is None else self._seed(gradient)
        self._values.backward(seed, *args, **kwargs)

    def _differentiated(self, op: str) -> Tensor:
        return self._values

    def _gradient(self, values: Tensor) -> NestedTensor:
        return self._with(values)

    def _seed(self, gradient: Any) -> Any:
        return gradient._values if isinstance(gradient, NestedTensor) else gradient

    def _saved_as(self) -> tuple[Any, ...]:
        """Which function of torch's makes it again in a file, and of what."""
        values, offsets = self._values.detach(), self._offsets
        if self.layout is jagged:
            facts: dict[str, Any] = {
                "values": values,
                "offsets": offsets,
                "lengths": None,
                "_ragged_idx": self._ragged,
                "_metadata_cache": {},
                "requires_grad": self.requires_grad,
            }
            return "torch.nested._internal.nested_tensor", "_rebuild_njt", facts
        rows = [part.contiguous() for part in self._with(values).unbind()]
        make = FUNCTIONS["tensor"]
        starts = ends_of([row.numel() for row in rows], offsets)[:-1]
        buffer = FUNCTIONS["cat"]([row.reshape(-1) for row in rows])
        sizes, strides = (make([tuple(get(r)) for r in rows]) for get in (_shape, _strides))
        return "torch._utils", "_rebuild_nested_tensor", buffer, sizes, strides, starts

    # What the functions of the library ask ------------------------------------------------------
    def _answer(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from .functions import answer

        return answer(name, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        from .functions import known

        if name.startswith("_") or not hasattr(Tensor, name):
            raise AttributeError(f"'NestedTensor' object has no attribute {name!r}")
        if not known(name):
            raise UnsupportedError(
                f"[{name}] is not defined for nested tensors; use values(), unbind() or "
                "to_padded_tensor(padding)"
            )
        return partial(_called, name, self)

    def __repr__(self) -> str:
        if self.layout is jagged:
            return f"NestedTensor(size={self.shape}, offsets={self._offsets})"
        lines = ",\n".join(
            "\n".join("  " + line for line in repr(part.detach()).split("\n"))
            for part in self.unbind()
        )
        return f"nested_tensor([\n{lines}\n])"


def _shape(x: Tensor) -> Any:
    return x.shape


def _strides(x: Tensor) -> Any:
    return x.stride()


def _called(name: str, *args: Any, **kwargs: Any) -> Any:
    from .functions import answer

    return answer(name, args, kwargs)


_OPERATORS = {
    "add": "__add__",
    "sub": "__sub__",
    "mul": "__mul__",
    "div": "__truediv__",
    "floor_divide": "__floordiv__",
    "remainder": "__mod__",
    "pow": "__pow__",
    "matmul": "__matmul__",
    "bitwise_and": "__and__",
    "bitwise_or": "__or__",
    "eq": "__eq__",
    "ne": "__ne__",
    "lt": "__lt__",
    "le": "__le__",
    "gt": "__gt__",
    "ge": "__ge__",
}


def _operator(name: str, turned: bool) -> Any:
    def run(self: NestedTensor, other: Any) -> Any:
        return _called(name, other, self) if turned else _called(name, self, other)

    return run


def _alone(name: str) -> Any:
    return lambda self: _called(name, self)


for _name, _dunder in _OPERATORS.items():
    setattr(NestedTensor, _dunder, _operator(_name, False))
    if _name in ("add", "sub", "mul", "div", "pow", "matmul"):
        setattr(NestedTensor, f"__r{_dunder[2:]}", _operator(_name, True))
    if _name in ("add", "sub", "mul", "div", "pow"):
        setattr(NestedTensor, f"__i{_dunder[2:]}", _operator(f"{_name}_", False))
for _name, _dunder in {"neg": "__neg__", "bitwise_not": "__invert__", "abs": "__abs__"}.items():
    setattr(NestedTensor, _dunder, _alone(_name))
