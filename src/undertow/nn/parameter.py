"""What a module learns and what it merely keeps: `Parameter` and `Buffer`."""

from __future__ import annotations

from typing import Any

from ..core.overriding import disabled
from ..core.register import FUNCTIONS
from ..core.tensor import Tensor, TensorType, share, wrap_shared
from ..errors import ArgumentError, DTypeError, UnsupportedError


class ParameterType(TensorType):
    """Of `isinstance(x, Parameter)`: an instance of another subclass of Tensor can be one, too."""

    def __instancecheck__(cls, instance: object) -> bool:
        if cls is Parameter and isinstance(instance, Tensor) and "_is_param" in vars(instance):
            return bool(vars(instance)["_is_param"])
        return type.__instancecheck__(cls, instance)


class Parameter(Tensor, metaclass=ParameterType):
    """A tensor that a `Module` lists among its parameters when it is assigned as an attribute.

    It shares the memory of `data`, is a leaf, and requires gradients unless told otherwise. Of an
    instance of a class of somebody else's it makes one of the same class, which counts as one.

    >>> import undertow as ut
    >>> ut.nn.Parameter(ut.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    __torch_function__ = disabled

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        if isinstance(data, Tensor) and not isinstance(data, _PLAIN) and type(data) is not Tensor:
            return _of_class(data, requires_grad)
        return made_of(cls, data).requires_grad_(requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) not in memo:
            made = type(self)(_copied(self), self.requires_grad)
            made.__dict__.update(self.__dict__)
            memo[id(self)] = made
        return memo[id(self)]

    def __copy__(self) -> Parameter:
        made = type(self)(self, self.requires_grad)
        made.__dict__.update(self.__dict__)
        return made

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.detach(), self.requires_grad, self.__dict__)

    def __repr__(self, **contents: Any) -> str:
        return f"{type(self).__name__} containing:\n{super().__repr__(**contents)}"


class Buffer(Tensor):
    """A tensor that a `Module` lists among its buffers when it is assigned as an attribute.

    >>> import undertow as ut
    >>> m = ut.nn.Module()
    >>> m.seen = ut.nn.Buffer(ut.zeros(1))
    >>> [name for name, _ in m.named_buffers()]
    ['seen']
    """

    persistent: bool

    __torch_function__ = disabled

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Buffer:
        made = made_of(cls, data)
        made.persistent = persistent
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Buffer:
        if id(self) not in memo:
            memo[id(self)] = type(self)(_copied(self), persistent=self.persistent)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.detach(), False, self.__dict__)


_PLAIN = (Parameter, Buffer)


def _of_class(data: Tensor, requires_grad: bool) -> Any:
    """An instance of a subclass of Tensor as a parameter: it keeps its class."""
    made: Any = data.detach().requires_grad_(requires_grad)
    if type(made) is not type(data):
        raise UnsupportedError(
            f"[Parameter] of a {type(data).__name__} needs a detach() that gives one, which its "
            f"class overrides to give a {type(made).__name__}"
        )
    vars(made)["_is_param"] = True
    return made


def made_of(kind: type[Tensor], data: Any) -> Any:
    """A leaf of that class that shares the memory of `data`."""
    if data is None:
        data = FUNCTIONS["empty"](0)
    elif not isinstance(data, Tensor):
        raise DTypeError(
            f"[{kind.__name__}] is made of a tensor, got {type(data).__name__}; "
            "use ut.tensor(data) first"
        )
    return wrap_shared(data._array, share(data), kind)


def _copied(t: Tensor) -> Tensor:
    return t.detach().clone()


def _rebuild(kind: Any, data: Tensor, requires_grad: bool, attributes: dict[str, Any]) -> Any:
    """A parameter or buffer from what its pickle stored."""
    made = made_of(kind, data).requires_grad_(requires_grad)
    made.__dict__.update(attributes)
    return made


class _Uninitialized:
    """What parameters and buffers that have no shape yet share."""

    _becomes: type[Tensor]
    _kind: tuple[Any, Any]  # dtype and device to be

    def materialize(self: Any, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Give it memory of that shape, with no particular values, and its proper class."""
        dtype, device = dtype or self.dtype, device or self.device
        made = FUNCTIONS["empty"](shape, dtype=dtype, device=device)
        self.__class__ = self._becomes
        del self._kind
        self.data = made

    @property
    def _array(self) -> Any:
        """There is none yet, whoever asks: an op, a shape, a number of elements."""
        raise ArgumentError(
            f"[{type(self).__name__}] attempted to use an uninitialized parameter or buffer, which "
            "has no shape before its module has seen an input: call the module once, or "
            "materialize(shape)"
        )

    @property
    def dtype(self) -> Any:
        """What its elements will be."""
        return self._kind[0]

    @property
    def device(self) -> Any:
        """Where its elements will be."""
        return self._kind[1]

    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        """The same without a shape, of another dtype or on another device."""
        like = FUNCTIONS["empty"](0, dtype=self.dtype, device=self.device).to(*args, **kwargs)
        self._kind = like.dtype, like.device
        return self

    def __repr__(self, **contents: Any) -> str:
        return f"<{type(self).__name__}>"


class UninitializedParameter(_Uninitialized, Parameter):
    """A parameter whose shape the first input tells; lazy modules have them.

    >>> import undertow as ut
    >>> layer = ut.nn.LazyLinear(2)
    >>> layer.weight
    <UninitializedParameter>
    >>> _ = layer(ut.ones(1, 5))
    >>> type(layer.weight).__name__, layer.weight.shape
    ('Parameter', (2, 5))
    """

    _becomes = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None
    ) -> UninitializedParameter:
        made = Parameter(FUNCTIONS["empty"](0, device=device, dtype=dtype), requires_grad)
        return waiting(made, cls)

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedParameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.device, self.dtype)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return type(self), (self.requires_grad, str(self.device), self.dtype)


class UninitializedBuffer(_Uninitialized, Buffer):
    """A buffer whose shape the first input tells.

    >>> import undertow as ut
    >>> mean = ut.nn.UninitializedBuffer()
    >>> mean.materialize((3,))
    >>> type(mean).__name__, mean.shape
    ('Buffer', (3,))
    """

    _becomes = Buffer

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> UninitializedBuffer:
        made = Buffer(FUNCTIONS["empty"](0, device=device, dtype=dtype), persistent=persistent)
        return waiting(made.requires_grad_(requires_grad), cls)

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedBuffer:
        if id(self) not in memo:
            memo[id(self)] = type(self)(False, self.device, self.dtype, self.persistent)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return type(self), (False, str(self.device), self.dtype, self.persistent)


def waiting(made: Any, kind: Any) -> Any:
    """A parameter or buffer that gives up its memory until it is materialized."""
    made._kind = made.dtype, made.device
    made.__class__ = kind
    return made


def is_lazy(value: Any) -> bool:
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(value, _Uninitialized)
