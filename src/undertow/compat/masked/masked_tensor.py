"""Tensors of which some elements are not there: `masked_tensor`, and what can be done to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...core.node import Node
from ...core.other_kinds import OtherKind
from ...core.register import FUNCTIONS, SPACES
from ...core.tensor import Tensor
from ...devices import Device
from ...dtypes import DType
from ...dtypes import bool as boolean
from ...errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from ...layouts import layout as Layout
from ...layouts import strided
from ...ops.elementwise.comparison import where
from ...shapes import Size

# What is done to every element, and leaves the mask as it is.
UNARY = """
abs absolute acos arccos acosh arccosh angle asin arcsin asinh arcsinh atan arctan atanh arctanh
bitwise_not ceil clamp clip conj_physical cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1
fix floor frac lgamma log log10 log1p log2 logit i0 isnan nan_to_num neg negative positive pow
rad2deg reciprocal round rsqrt sigmoid sign sgn signbit sin sinc sinh sqrt square tan tanh trunc
clone contiguous detach float double half bfloat16 int long short bool to type
""".split()  # noqa: SIM905
# Of two operands, whose masks must be the same where both have one.
BINARY = """
add atan2 arctan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift div
divide floor_divide fmod logaddexp logaddexp2 mul multiply nextafter remainder sub subtract
true_divide eq ne le ge greater greater_equal gt less_equal lt less maximum minimum fmax fmin
not_equal pow
""".split()  # noqa: SIM905
# What chooses or orders elements is done to the data and to the mask.
MOVING = """
select transpose split t narrow expand expand_as view reshape unsqueeze unfold squeeze permute
flatten unflatten movedim unbind chunk flip roll index_select swapaxes diagonal tile repeat
""".split()  # noqa: SIM905
REDUCTIONS = "sum mean amin amax argmin argmax prod norm var std".split()  # noqa: SIM905
NORMALISING = "softmax log_softmax softmin cumsum cumprod".split()  # noqa: SIM905
_OPERATORS = {
    "add": "__add__ __radd__",
    "sub": "__sub__",
    "mul": "__mul__ __rmul__",
    "div": "__truediv__",
    "floor_divide": "__floordiv__",
    "remainder": "__mod__",
    "pow": "__pow__",
    "bitwise_and": "__and__",
    "bitwise_or": "__or__",
    "bitwise_xor": "__xor__",
    "eq": "__eq__",
    "ne": "__ne__",
    "lt": "__lt__",
    "le": "__le__",
    "gt": "__gt__",
    "ge": "__ge__",
    "neg": "__neg__",
    "abs": "__abs__",
    "bitwise_not": "__invert__",
}


def _data(x: Any) -> Any:
    return x._data if isinstance(x, MaskedTensor) else x


class MaskedTensor(OtherKind):
    """Data beside a mask, which is True where an element is there; others print as `--`.

    Functions of elements keep the mask, reductions leave out what is not there, and two operands
    need the same mask. Gradients are masked tensors with the same mask.

    >>> import undertow as ut
    >>> x = ut.masked.masked_tensor(ut.tensor([1.0, 2.0, 4.0]), ut.tensor([True, False, True]))
    >>> x.log2()
    MaskedTensor(
      [  0.0000,       --,   2.0000]
    )
    >>> x.mean()
    MaskedTensor(  2.5000, True)
    """

    __slots__ = ("_data", "_mask")
    __array_priority__ = 2000
    __hash__ = object.__hash__
    _data: Tensor
    _mask: Tensor
    layout: Layout = strided

    def __init__(self, data: Any, mask: Any, requires_grad: bool = False) -> None:
        data, mask = _checked(data, mask)
        self._set(data.detach().clone(), mask.clone())
        self._data.requires_grad_(requires_grad)

    def _set(self, data: Tensor, mask: Tensor) -> MaskedTensor:
        self._data, self._mask = data, mask
        return self

    @staticmethod
    def _of(data: Tensor, mask: Tensor) -> MaskedTensor:
        """With the history of `data`, and its memory."""
        return MaskedTensor.__new__(MaskedTensor)._set(data, mask)

    # What it is -------------------------------------------------------------------------------
    def get_data(self) -> Tensor:
        """The data, with what stands where nothing is."""
        return self._data

    def get_mask(self) -> Tensor:
        """True where an element is there."""
        return self._mask

    def to_tensor(self, value: Any) -> Tensor:
        """The data, with `value` where nothing is."""
        return self._data.masked_fill(~self._mask, value)

    @property
    def shape(self) -> Size:
        """The sizes of its dimensions."""
        return self._data.shape

    @property
    def ndim(self) -> int:
        """The number of its dimensions."""
        return self._data.ndim

    @property
    def dtype(self) -> DType:
        """The dtype of its data."""
        return self._data.dtype

    @property
    def device(self) -> Device:
        """Where it lives."""
        return self._data.device

    is_sparse = False

    def dim(self) -> int:
        """The number of its dimensions."""
        return self._data.ndim

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of one dimension."""
        return self._data.size() if dim is None else self._data.size(dim)

    def numel(self) -> int:
        """The number of elements, there or not."""
        return self._data.numel()

    def __len__(self) -> int:
        return len(self._data)

    def item(self) -> Any:
        """The one element as a number; an error if it is not there."""
        if self._mask.numel() == 1 and not self._mask.item():
            raise ArgumentError("[item] the element is masked; use to_tensor(value).item()")
        return self._data.item()

    def to_dense(self) -> MaskedTensor:
        """Itself: there are no masked tensors of sparse data here."""
        return self

    # Its place in the graph, which is that of the data ----------------------------------------
    @property
    def requires_grad(self) -> bool:
        """Whether gradients are computed for it; settable on leaves."""
        return self._data.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._data.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> MaskedTensor:
        """Switch gradients on or off for this leaf; returns itself."""
        self._data.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made its data."""
        return self._data.is_leaf

    @property
    def grad_fn(self) -> Node | None:
        """The node that made its data."""
        return self._data.grad_fn

    @property
    def grad(self) -> Any:
        """The gradient of its data, with the same mask."""
        found = self._data.grad
        return None if found is None else MaskedTensor._of(found, self._mask)

    @grad.setter
    def grad(self, value: Any) -> None:
        self._data.grad = _data(value)

    def backward(self, gradient: Any = None, *args: Any, **kwargs: Any) -> None:
        """The backward pass from its data; a gradient may be masked, too."""
        if isinstance(gradient, MaskedTensor):
            gradient = gradient.to_tensor(0)
        self._data.backward(gradient, *args, **kwargs)

    # What the functions of the library ask ----------------------------------------------------
    def _answer(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = name.removeprefix("masked.").removeprefix("nn.functional.")
        if name == "where":
            return _where(*args, **kwargs)
        if name in ("cat", "stack", "concat", "hstack", "vstack"):
            return _joined(name, *args, **kwargs)
        if name in BINARY and len(args) > 1:
            return _of_two(name, *args, **kwargs)
        return super()._answer(name, args, kwargs)

    def where(self, condition: Tensor, other: Any) -> MaskedTensor:
        """Itself where the condition holds, `other` elsewhere: data and masks."""
        return _where(condition, self, other)

    def all(self, dim: Any = None, keepdim: bool = False) -> MaskedTensor:
        """Whether all elements that are there are true."""
        filled = self._data.bool().masked_fill(~self._mask, True)
        found = filled.all() if dim is None else filled.all(dim, keepdim=keepdim)
        return MaskedTensor._of(found, _any(self._mask, dim, keepdim))

    def __getitem__(self, index: Any) -> MaskedTensor:
        return MaskedTensor._of(self._data[index], self._mask[index])

    def __iter__(self) -> Iterable[MaskedTensor]:
        return iter([self[i] for i in range(len(self))])

    def __rsub__(self, other: Any) -> MaskedTensor:
        return _of_two("sub", other, self)

    def __rtruediv__(self, other: Any) -> MaskedTensor:
        return _of_two("div", other, self)

    def __bool__(self) -> bool:
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(Tensor, name):
            raise AttributeError(f"'MaskedTensor' object has no attribute {name!r}")
        raise UnsupportedError(
            f"[{name}] is not defined for masked tensors; use get_data() or to_tensor(value)"
        )

    def __repr__(self) -> str:
        if not self.ndim:
            there = self._mask.item()
            return f"MaskedTensor({_number(self._data.item()) if there else '--'}, {there})"
        text = _text(self._data.tolist(), self._mask.tolist())
        lines = "\n".join("  " + line for line in text.split("\n"))
        return f"MaskedTensor(\n{lines}\n)"


def _checked(data: Any, mask: Any) -> tuple[Tensor, Tensor]:
    for what, given in (("data", data), ("mask", mask)):
        if not isinstance(given, Tensor):
            raise DTypeError(f"[masked_tensor] {what} must be a Tensor, got {type(given).__name__}")
    if mask.dtype is not boolean:
        raise DTypeError(f"[masked_tensor] the mask must be of dtype bool, got {mask.dtype}")
    if data.shape != mask.shape:
        raise ShapeError(
            f"[masked_tensor] data and mask must have one shape, got {data.shape} and {mask.shape}"
        )
    return data, mask


# Text --------------------------------------------------------------------------------------------
def _number(value: Any) -> str:
    return f"{value:8.4f}" if isinstance(value, float) else str(value)


def _text(data: list[Any], mask: list[Any]) -> str:
    if data and isinstance(data[0], list):
        rows = (_text(d, m) for d, m in zip(data, mask, strict=True))
        inner = ["\n".join("  " + line for line in row.split("\n")) for row in rows]
        return "[\n" + ",\n".join(inner) + "\n]"
    texts = [_number(d) for d in data]
    width = max((len(t) if m else 8 for t, m in zip(texts, mask, strict=True)), default=0)
    shown = (t if m else "--".rjust(width) for t, m in zip(texts, mask, strict=True))
    return "[" + ", ".join(shown) + "]"


# Functions ---------------------------------------------------------------------------------------
def _of_two(name: str, a: Any, b: Any, **kwargs: Any) -> MaskedTensor:
    masks = [x._mask for x in (a, b) if isinstance(x, MaskedTensor)]
    if len(masks) == 2 and not (masks[0].shape == masks[1].shape and masks[0].equal(masks[1])):
        raise ArgumentError(
            f"[{name}] both operands are masked, and their masks differ; bring them to one mask "
            "with masked_tensor(x.get_data(), mask)"
        )
    found = FUNCTIONS[name](_data(a), _data(b), **kwargs)
    return MaskedTensor._of(found, masks[0].expand(found.shape))


def _where(condition: Any, input: Any, other: Any) -> MaskedTensor:
    if not isinstance(condition, Tensor):
        raise DTypeError(f"[where] the condition must be a Tensor, got {type(condition).__name__}")
    here, there = (x._mask if isinstance(x, MaskedTensor) else True for x in (input, other))
    data = where(condition, _data(input), _data(other))
    return MaskedTensor._of(data, where(condition, here, there))


def _joined(name: str, tensors: Any, *args: Any, **kwargs: Any) -> MaskedTensor:
    masks = [
        x._mask if isinstance(x, MaskedTensor) else FUNCTIONS["ones_like"](x, dtype=boolean)
        for x in tensors
    ]
    join = FUNCTIONS[name]
    return MaskedTensor._of(
        join([_data(x) for x in tensors], *args, **kwargs), join(masks, *args, **kwargs)
    )


def _any(mask: Tensor, dim: Any, keepdim: bool) -> Tensor:
    if dim is None and not keepdim:
        return mask.any()
    return mask.any(tuple(range(mask.ndim)) if dim is None else dim, keepdim=keepdim)


def _unary(name: str) -> Callable[..., Any]:
    def method(self: MaskedTensor, *args: Any, **kwargs: Any) -> MaskedTensor:
        if any(isinstance(a, MaskedTensor) for a in args):
            return _of_two(name, self, *args, **kwargs)
        found = getattr(self._data, name)(*args, **kwargs)
        return MaskedTensor._of(found, self._mask.expand(found.shape))

    return method


def _in_place(name: str) -> Callable[..., Any]:
    def method(self: MaskedTensor, *args: Any, **kwargs: Any) -> MaskedTensor:
        others = [a._mask for a in args if isinstance(a, MaskedTensor)]
        if not all(self._mask.equal(mask) for mask in others):
            raise ArgumentError(f"[{name}] both operands are masked, and their masks differ")
        getattr(self._data, name)(*map(_data, args), **kwargs)
        return self

    return method


def _binary(name: str) -> Callable[..., Any]:
    def method(self: MaskedTensor, other: Any, **kwargs: Any) -> MaskedTensor:
        return _of_two(name, self, other, **kwargs)

    return method


def _moving(name: str) -> Callable[..., Any]:
    def method(self: MaskedTensor, *args: Any, **kwargs: Any) -> Any:
        args = tuple(map(_data, args))
        data, mask = (getattr(t, name)(*args, **kwargs) for t in (self._data, self._mask))
        if isinstance(data, Tensor):
            return MaskedTensor._of(data, mask)
        return tuple(MaskedTensor._of(d, m) for d, m in zip(data, mask, strict=True))

    return method


def _reduction(name: str) -> Callable[..., Any]:
    def method(
        self: MaskedTensor, dim: Any = None, keepdim: bool = False, dtype: Any = None, **kwargs: Any
    ) -> MaskedTensor:
        kwargs.pop("mask", None)
        if dim is None and self.ndim and name.startswith("arg"):
            flat = MaskedTensor._of(self._data.flatten(), self._mask.flatten())
            found = SPACES["masked"][name](flat._data, 0, mask=flat._mask)
            found = found.reshape((1,) * self.ndim) if keepdim else found
        else:
            kwargs |= {"keepdim": keepdim, "dtype": dtype, "mask": self._mask}
            found = SPACES["masked"][name](self._data, dim=dim, **kwargs)
        return MaskedTensor._of(found, _any(self._mask, dim, keepdim))

    return method


def _normalising(name: str) -> Callable[..., Any]:
    def method(self: MaskedTensor, dim: int, **kwargs: Any) -> MaskedTensor:
        kwargs["mask"] = self._mask
        return MaskedTensor._of(SPACES["masked"][name](self._data, dim, **kwargs), self._mask)

    return method


def _publish() -> None:
    """Give the class its methods, and their in-place forms where a Tensor has them."""
    kinds = {_moving: MOVING, _reduction: REDUCTIONS, _normalising: NORMALISING}
    kinds |= {_binary: BINARY, _unary: UNARY}
    for make, names in kinds.items():
        for name in names:
            setattr(MaskedTensor, name, _named(make(name), name))
            if make in (_binary, _unary) and hasattr(Tensor, f"{name}_"):
                setattr(MaskedTensor, f"{name}_", _named(_in_place(f"{name}_"), f"{name}_"))
    for name, operators in _OPERATORS.items():
        for operator in operators.split():
            setattr(MaskedTensor, operator, getattr(MaskedTensor, name))


def _named(method: Any, name: str) -> Any:
    method.__name__ = name
    method.__qualname__ = f"MaskedTensor.{name}"
    method.__doc__ = f"`Tensor.{name}`, of the elements that are there."
    return method


_publish()


# Making them -------------------------------------------------------------------------------------
def masked_tensor(data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
    """A masked tensor with copies of `data` and `mask`: a leaf.

    >>> import undertow as ut
    >>> x = ut.masked.masked_tensor(ut.tensor([3.0, 0.0]), ut.tensor([True, False]), True)
    >>> (1 / x).sum().backward()
    >>> x.grad
    MaskedTensor(
      [ -0.1111,       --]
    )
    """
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Tensor, mask: Tensor) -> MaskedTensor:
    """A masked tensor with the history of `data`, which gets no gradient where it is masked.

    >>> import undertow as ut
    >>> x = ut.tensor([4.0, 0.0], requires_grad=True)
    >>> ut.masked.as_masked_tensor(x, x != 0).rsqrt().sum().backward()
    >>> x.grad
    tensor([-0.0625,  0.0000])
    """
    data, mask = _checked(data, mask)
    return MaskedTensor._of(where(mask, data, data.detach()), mask.clone())


def is_masked_tensor(obj: Any, /) -> bool:
    """Whether it is a masked tensor.

    >>> import undertow as ut
    >>> ut.masked.is_masked_tensor(ut.ones(2))
    False
    """
    return isinstance(obj, MaskedTensor)
