"""`ops.aten`: the functions of the package under the names of torch's operators.

An operator is called as torch calls it, which is mostly as its function is called in Python; those
that take other arguments, or have no function, stand in `aten_only`. Overloads (`add.Tensor`,
`add.Scalar`) are one function here, which tells its arguments apart.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..core.dispatching import MORE, run_operator
from ..core.register import FUNCTIONAL, FUNCTIONS, SPACES
from ..core.tensor import Tensor
from ..errors import UnsupportedError
from . import aten_only
from ._ops import OpOverload, OpOverloadPacket, _OpNamespace, standing_in
from .refusals import find, table

__all__ = ["Aten", "function"]

_PACKAGE = __name__.partition(".")[0]


def function(name: str) -> Any:
    """The function for an operator's name; None where there is none.

    >>> import undertow as ut
    >>> function("add") is ut.add, function("relu_") is ut.Tensor.relu_
    (True, True)
    """
    if name.startswith("__"):
        return None
    own = vars(aten_only).get(f"aten_{name}")
    if own is not None or name in FUNCTIONS:
        return own or FUNCTIONS[name]
    for space in ("linalg", "fft", "special"):
        if name.startswith(f"{space}_"):
            import_module(f"{_PACKAGE}.{space}")
            return SPACES.get(space, {}).get(name.removeprefix(f"{space}_"))
    if name in FUNCTIONAL or name in MORE:
        return FUNCTIONAL.get(name) or MORE[name]
    if name.startswith("_"):
        package: Any = import_module(_PACKAGE)
        found = getattr(package, name, None)  # as `_foreach_add` and `_safe_softmax`
        return found if callable(found) else None
    found = getattr(Tensor, name, None)
    return found if callable(found) else None


class AtenOverload(OpOverload):
    """One overload: a call of the function."""

    def __init__(self, name: str, overload: str, call: Any, namespace: str = "aten") -> None:
        self.namespace, self._opname, self._overloadname = namespace, name, overload
        self.__name__ = self.__qualname__ = f"{name}.{overload}"
        self.__module__ = f"undertow.ops.{namespace}"
        self._call, self.tags = call, ()

    def name(self) -> str:
        """`aten::name.overload`."""
        tail = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self.namespace}::{self._opname}{tail}"

    def __getattr__(self, name: str) -> Any:
        if name == "_schema":
            raise UnsupportedError(
                f"[{self.name()}] the schemas of torch's own operators are not kept here"
            )
        raise AttributeError(f"[{self.name()}] has no attribute {name!r}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        proxy = standing_in(args, kwargs)
        if proxy is not None:
            return proxy.__torch_function__(self, (type(proxy),), args, kwargs)
        if "self" in kwargs:
            args = (kwargs.pop("self"), *args)
        for name in _LAYOUTS & set(kwargs):  # of memory that is made: there is one kind
            if kwargs[name] in (None, False) or "strided" in str(kwargs[name]):
                del kwargs[name]
        return run_operator(self, args, kwargs)


_LAYOUTS = {"layout", "pin_memory"}


class AtenPacket(OpOverloadPacket):
    """All overloads of a function, which tells them apart itself."""

    def __init__(self, name: str, call: Any) -> None:
        super().__init__("aten", name)
        self._call = call

    def overloads(self) -> list[str]:
        """The names of the overloads that were asked for: the function has no list of them."""
        asked = [n for n, v in vars(self).items() if isinstance(v, AtenOverload)]
        return asked or ["default"]

    def _overload(self, name: str) -> Any:
        return None if name.startswith("_") else AtenOverload(self._opname, name, self._call)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        proxy = standing_in(args, kwargs)
        if proxy is not None:
            return proxy.__torch_function__(self, (type(proxy),), args, kwargs)
        return self.default(*args, **kwargs)


class Aten(_OpNamespace):
    """`ops.aten`.

    >>> import undertow as ut
    >>> ut.ops.aten.add.Tensor(ut.ones(2), ut.ones(2), alpha=2)
    tensor([3., 3.])
    >>> ut.ops.aten.add.Tensor is ut.ops.aten.add.Tensor
    True
    """

    def __init__(self) -> None:
        super().__init__("aten")

    def _packet(self, name: str) -> OpOverloadPacket:
        if name not in self.__dict__:
            call = function(name)
            if call is None and name in table()["ops.aten"]:
                call = find("ops.aten", name)
            if call is None:
                raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute {name!r}")
            self.__dict__[name] = AtenPacket(name, call)
        found: OpOverloadPacket = self.__dict__[name]
        return found

    def __getattr__(self, name: str) -> Any:
        return self._packet(name)

    def __dir__(self) -> list[str]:
        own = [n.removeprefix("aten_") for n in vars(aten_only) if n.startswith("aten_")]
        return sorted({*FUNCTIONS, *own})
