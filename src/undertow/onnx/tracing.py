"""What a model computes, as the list of ops that run while it is called.

Note [values]
Every tensor that an op takes or gives is a value, known by what made it: by its node, because a
change in place gives a tensor a new one, or by its array, as long as that has not changed since.
So gradients are recorded while the model runs, for the floating inputs at least. What is neither is
a constant. Inputs go to the model as copies, which it may change in place.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..core.dispatch import apply
from ..core.modes import current, enter, leave
from ..core.op import Op
from ..core.reading import READERS
from ..core.tensor import Tensor, node_of
from ..errors import UnsupportedError

_PACKAGE = __name__.partition(".")[0]
_FOUND = frozenset(("nonzero", "unique"))  # ops whose results are as long as the elements say


class Value:
    """A tensor of the trace. `varies` tells whether it depends on an input."""

    __slots__ = ("index", "made_by", "name", "tensor", "varies")

    def __init__(self, tensor: Tensor, name: str | None = None, varies: bool = False) -> None:
        self.tensor = tensor
        self.name = name
        self.varies = varies
        self.made_by: Call | None = None
        self.index = 0


class Call(NamedTuple):
    """One op that ran, on values, numbers and None, inside the module at `path`."""

    op: Op
    inputs: tuple[Any, ...]
    params: tuple[Any, ...]
    outputs: tuple[Value, ...]
    path: str


class Trace:
    """One call of a model, for `what`, as errors and (if it `warns`) warnings call it."""

    def __init__(self, what: str = "onnx.export", warns: bool = True) -> None:
        self.what = what
        self.warns = warns
        self.calls: list[Call] = []
        self.values: list[Value] = []  # in the order in which they are met
        self._by_node: dict[tuple[int, int], Value] = {}
        self._by_array: dict[int, tuple[Value, int]] = {}  # with the version of the memory
        self._kept: list[Any] = []  # what is known by its id must not go away
        self._path: list[str] = []

    # Values -----------------------------------------------------------------------------------
    def add(self, t: Tensor, name: str | None = None, varies: bool = False) -> Value:
        """A new value."""
        value = Value(t.detach(), name, varies)
        self.values.append(value)
        node = node_of(t)
        if node is not None:
            self._by_node[id(node), t._index] = value
        self._by_array[id(t._array)] = (value, t._version)
        self._kept += [t, node, t._array]
        return value

    def find(self, t: Tensor, op: str) -> Value:
        """The value that a tensor is; see Note [values]."""
        node = node_of(t)
        if node is not None and (id(node), t._index) in self._by_node:
            return self._by_node[id(node), t._index]
        known = self._by_array.get(id(t._array))
        if known is not None and known[1] == t._version:
            return known[0]
        if not t.is_leaf or (known is not None and known[0].varies):
            raise UnsupportedError(
                f"[{self.what}] a tensor of shape {t.shape} was changed in place, in a way that "
                f"cannot be followed, before {op}{self.where()}; compute a new tensor instead"
            )
        if known is None:
            return self.add(t)
        token = enter(current().but(around=None))  # the copy of a constant is no op of the model
        try:
            return self.add(t.clone())
        finally:
            leave(token)

    def where(self) -> str:
        """The module that runs now, for errors."""
        return place(self._path[-1] if self._path else "")

    # Running ----------------------------------------------------------------------------------
    def run(self, model: Any, args: Sequence[Any], names: Sequence[str]) -> Any:
        """What `model(*args)` returns, recorded; `names` are those of the tensors in `args`."""
        listed = iter(names)
        given = []
        for arg in args:
            if isinstance(arg, Tensor):
                t = arg.detach()
                t = t.requires_grad_().clone() if t.is_floating_point() else t.clone()
                self.add(t, next(listed), varies=True)
                arg = t
            given.append(arg)
        for path, t in _state(model):
            self.add(t, path)
        state = current().but(grad=True, inference=False, around=self._around)
        token = enter(state)
        READERS.append(self._read)
        try:
            with _watched(model, self._path):
                return model(*given)
        finally:
            READERS.remove(self._read)
            leave(token)

    def _read(self, t: Tensor | None) -> None:
        """Warn that a program reads a value that depends on an input, or draws random numbers."""
        if current().around != self._around:  # another thread's, or an op's own
            return
        if t is None:
            self._warn("random numbers are drawn", "these numbers become constants of the model")
            return
        node = node_of(t)
        known = self._by_node.get((id(node), t._index)) if node is not None else None
        if known is None:
            by_array = self._by_array.get(id(t._array))
            known = by_array[0] if by_array is not None and by_array[1] == t._version else None
        if known is not None and known.varies:
            self._warn(
                "a tensor that depends on the inputs is read as a number or bool",
                "what the program does with it becomes a constant of the model, and a branch on it "
                "is frozen to the one that was taken",
            )

    def _warn(self, what: str, so: str) -> None:
        if self.warns:
            said = f"[{self.what}] {what}{self.where()}: {so}"
            warnings.warn_explicit(said, UserWarning, *_user_line())

    def _around(self, op: Op, inputs: Sequence[Any], params: tuple[Any, ...]) -> Any:
        taken = tuple([self.find(i, op.name) if isinstance(i, Tensor) else i for i in inputs])
        token = enter(current().but(around=None))
        try:
            out = apply(op, inputs, params)
        finally:
            leave(token)
        varies = any(isinstance(v, Value) and v.varies for v in taken)
        if varies and op.name in _FOUND:
            self._warn(
                "how many elements are found (by a mask, nonzero or unique) depends on the inputs",
                "their number, and the places that a mask selects, become constants of the model",
            )
        given = tuple(
            [self.add(o, None, varies) for o in (out if isinstance(out, tuple) else (out,))]
        )
        call = Call(op, taken, params, given, self._path[-1] if self._path else "")
        for i, value in enumerate(given):
            value.made_by, value.index = call, i
        self.calls.append(call)
        return out


def _user_line() -> tuple[str, int]:
    """The file and line outside of the library that runs now."""
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and _home(frame) == _PACKAGE:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def _home(frame: Any) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def place(path: str) -> str:
    """`path` as it is told in an error."""
    return f" in module {path!r}" if path else ""


def _state(model: Any) -> Iterator[tuple[str, Tensor]]:
    """The parameters and buffers of a module, by their paths."""
    for kind in ("named_parameters", "named_buffers"):
        if hasattr(model, kind):
            yield from getattr(model, kind)()


@contextmanager
def _watched(model: Any, path: list[str]) -> Iterator[None]:
    """Keep `path` at the module that is running."""
    handles = []
    if hasattr(model, "named_modules"):
        for name, module in model.named_modules():
            if name:
                handles += [
                    module.register_forward_pre_hook(lambda *_, name=name: path.append(name)),
                    module.register_forward_hook(lambda *_: path.pop() and None, always_call=True),
                ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def is_in_onnx_export() -> bool:
    """Whether a model is being called in order to be exported.

    >>> import undertow as ut
    >>> ut.onnx.is_in_onnx_export()
    False
    """
    return isinstance(getattr(current().around, "__self__", None), Trace)
