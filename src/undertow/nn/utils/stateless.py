"""A module as a function of its parameters and buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...core.tensor import Tensor
from ...errors import ArgumentError, DTypeError
from ..modules.module import Module


def functional_call(
    module: Module,
    parameters_and_buffers: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in place of its parameters and buffers.

    They are given by their paths, those that are not given stay, and a tensor that the module has
    under several names is replaced under all of them unless `tie_weights` is False.

    >>> import undertow as ut
    >>> layer = ut.nn.Linear(2, 1)
    >>> other = {"weight": ut.ones(1, 2), "bias": ut.zeros(1)}
    >>> ut.nn.utils.stateless.functional_call(layer, other, ut.tensor([3.0, 4.0]))
    tensor([7.])
    """
    given = _merged(parameters_and_buffers)
    places = _places(module, given, tie_weights, strict)
    before = [place.get() for place in places]
    try:
        for place in places:
            place.set(given[place.path])
        args = () if args is None else args if isinstance(args, tuple) else (args,)
        return module(*args, **(kwargs or {}))
    finally:
        for place, value in zip(places, before, strict=True):
            now = place.get()
            if now is not given[place.path] and isinstance(parameters_and_buffers, dict):
                parameters_and_buffers[place.path] = now  # a buffer that forward replaced
            place.set(value)


_ABSENT: Any = object()


class _Place(NamedTuple):
    """Where a tensor stands in a module: in one of its registers, or as a plain attribute."""

    register: dict[str, Any]
    name: str
    path: str

    def get(self) -> Any:
        return self.register.get(self.name, _ABSENT)

    def set(self, value: Any) -> None:
        if value is _ABSENT:
            self.register.pop(self.name, None)
        else:
            self.register[self.name] = value


class _Property(NamedTuple):
    """A property of a module, as a parametrized tensor is, which knows where its value stands."""

    module: Module
    name: str
    path: str

    def get(self) -> Any:
        return getattr(self.module, self.name)

    def set(self, value: Any) -> None:
        setattr(self.module, self.name, value)


def _merged(given: Any) -> dict[str, Any]:
    parts = [given] if isinstance(given, Mapping) else given
    if not isinstance(parts, Sequence) or not all(isinstance(d, Mapping) for d in parts):
        raise DTypeError(
            "[functional_call] takes a dictionary of tensors by path, or several, got "
            f"{type(given).__name__}"
        )
    merged: dict[str, Any] = {}
    for path, value in [item for part in parts for item in part.items()]:
        if path in merged:
            raise ArgumentError(f"[functional_call] {path!r} is given twice")
        if value is not None and not isinstance(value, Tensor):
            raise DTypeError(
                f"[functional_call] {path!r} must be a Tensor or None, got {type(value).__name__}"
            )
        merged[path] = value
    return merged


def _places(
    module: Module, given: dict[str, Any], tie_weights: bool, strict: bool
) -> list[_Place | _Property]:
    """The places to change, each with the path of what comes there."""
    own = {place.path: place for place in _registered(module, "", ())}
    if tie_weights:
        ties: dict[int, list[str]] = {}
        for path, place in own.items():
            if place.get() is not None:
                ties.setdefault(id(place.get()), []).append(path)
        for paths in ties.values():
            named = [path for path in paths if path in given]
            if len(named) > 1 and any(given[path] is not given[named[0]] for path in named):
                raise ArgumentError(
                    f"[functional_call] {named} are one tensor in the module, and were given "
                    "different values; pass one of them, or tie_weights=False"
                )
            for path in paths if named else ():
                given.setdefault(path, given[named[0]])
    if strict:
        unexpected = [path for path in given if path not in own]
        missing = [p for p, place in own.items() if p not in given and place.get() is not None]
        if unexpected or missing:
            raise ArgumentError(
                f"[functional_call] with strict=True, {type(module).__name__} has no {unexpected}, "
                f"and {missing} of it miss"
            )
    return [own.get(path) or _unregistered(module, path) for path in given]


def _registered(module: Module, prefix: str, above: tuple[Module, ...]) -> Iterator[_Place]:
    """Every parameter and buffer below, under each of its paths; a module within itself once."""
    for register in (module._parameters, module._buffers):
        for name in register:
            yield _Place(register, name, prefix + name)
    for name, below in module._modules.items():
        if below is not None and below is not module and below not in above:
            yield from _registered(below, f"{prefix}{name}.", (*above, module))


def _unregistered(module: Module, path: str) -> _Place | _Property:
    """A tensor that is a plain attribute of a module, or none yet, as the path may have it."""
    owner, _, name = path.rpartition(".")
    below = module.get_submodule(owner)
    for register in (below._parameters, below._buffers):
        if name in register:
            return _Place(register, name, path)
    if name in below._modules:
        raise ArgumentError(
            f"[functional_call] {path!r} is a module of {type(module).__name__}; "
            "name a parameter or a buffer of it"
        )
    there: Any = _Place(vars(below), name, path)
    if hasattr(type(getattr(type(below), name, None)), "__set__"):
        there = _Property(below, name, path)
    now = there.get()
    if now is not _ABSENT and now is not None and not isinstance(now, Tensor):
        raise DTypeError(
            f"[functional_call] {path!r} of {type(module).__name__} is no tensor but a "
            f"{type(now).__name__}; name a parameter, a buffer or a tensor"
        )
    return there
