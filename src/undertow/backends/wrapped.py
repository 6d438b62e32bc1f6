"""Arrays of wrappers: a shape and a dtype, and who answers operators in the place of memory.

Note [wrappers]
A subclass that `Tensor._make_wrapper_subclass` made has no memory; what it holds, and what an
operator does to that, is its own business (`__torch_dispatch__`). Its array knows the class and the
attributes of the instance, so a wrapper is wherever its array is: in what a node saved, in a
gradient. The door asks the array's backend for every op (`steps`, which `core/wrapping` gives it).
A form that is asked for outside of an op looks at shapes only, or is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from ..devices import Device
from ..errors import UnsupportedError
from .base import Backend
from .dual import VIEWS
from .meta import MetaBackend
from .registry import backend_on
from .strided import StridedArray


class WrapperArray(StridedArray):
    """The array of a wrapper; `kind` is its class, `attributes` are those of the instance.

    What the class keeps in slots is in `slots`, from the first op on (`noted`).
    """

    __slots__ = ("attributes", "kind", "slots")

    kind: type
    attributes: dict[str, Any]
    slots: dict[str, Any]


def array_of(like: StridedArray, kind: type, attributes: dict[str, Any]) -> WrapperArray:
    """The array of a wrapper, with the layout of another one or of one on the device meta."""
    made = WrapperArray(WRAPPERS, like.buffer, like.shape, like.dtype, like.strides)
    made.kind, made.attributes, made.slots = kind, attributes, {}
    return made


def noted(array: WrapperArray, instance: Any) -> None:
    """Let an array know what its wrapper keeps in slots."""
    names = _slots_of(array.kind)
    if names:
        array.slots = {n: getattr(instance, n) for n in names if hasattr(instance, n)}


@cache
def _slots_of(kind: type) -> tuple[str, ...]:
    import copyreg

    own = {"_alias", "_array", "_grad", "_index", "_node"}  # every tensor's
    return tuple(n for n in copyreg._slotnames(kind) if n not in own)  # type: ignore[attr-defined]


def instance_of(array: WrapperArray) -> Any:
    """A new instance with the attributes of the one whose array this is."""
    made: Any = object.__new__(array.kind)
    made.__dict__ = array.attributes
    for name, value in array.slots.items():
        setattr(made, name, value)
    return made


def device_of(array: WrapperArray) -> Device:
    """The device that the class of a wrapper has named."""
    found: Device = array.attributes.get("_device", WRAPPERS.device)
    return found


class WrapperBackend(MetaBackend):
    """What stands in the place of a device for arrays of wrappers."""

    @property
    def steps(self) -> Any:  # type: ignore[override]
        """What runs an op on these arrays in the place of the door."""
        return STEPS[0]

    def prepare(
        self, exprs: Any, arrays: tuple[bool, ...], largest: bool = False
    ) -> Callable[..., Any]:
        return lambda *operands: None  # the door has another way

    def copy(self, x: Any) -> WrapperArray:
        if x.__class__ is not WrapperArray:  # a part of its layout
            _lost("copy")(self)
        found = array_of(x, x.kind, x.attributes)
        found.slots = x.slots
        return found


STEPS: list[Any] = []  # `core/wrapping` fills it


def _made(name: str) -> Callable[..., Any]:
    """A form that makes an array of nothing: a plain one, for nobody was asked."""

    def run(self: WrapperBackend, *args: Any) -> Any:
        return getattr(backend_on(None), name)(*args)

    run.__name__ = name
    return run


def _lost(name: str) -> Callable[..., Any]:
    def run(self: WrapperBackend, *args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError(
            f"[__torch_dispatch__] a wrapper met the form {name!r} outside of an operator, where "
            "nobody can be asked for it"
        )

    run.__name__ = name
    return run


# Those that only look at layouts, or are asked for around a call, are as on the device meta.
_LOOK = ("contiguous", "memory", "address", "storage_offset", "storage_size", "writable", "owned",
         "to_host", "require", "begin", "end", "lift", "empty")  # fmt: skip
_MAKE = ("full", "arange", "table", "philox", "from_host")
for _name in _MAKE:
    setattr(WrapperBackend, _name, _made(_name))
for _name, _form in vars(Backend).items():
    known = _name in (*_LOOK, *VIEWS) or _name in vars(WrapperBackend)
    if not _name.startswith("_") and callable(_form) and not known:
        setattr(WrapperBackend, _name, _lost(_name))
WRAPPERS = WrapperBackend(Device("meta"))
