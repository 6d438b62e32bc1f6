"""Modules and parameters in lists and dictionaries, and one after the other."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, TypeVar, overload

from ...core.modes import is_grad_enabled
from ...core.tensor import Tensor
from ...errors import DTypeError
from ..parameter import Parameter
from .module import Module

S = TypeVar("S", bound="_Numbered")


class _Numbered(Module):
    """What Sequential and ModuleList share: modules under the names "0", "1", …"""

    _modules: dict[str, Module]  # type: ignore[assignment]

    def _name(self, index: Any) -> str:
        index, count = operator.index(index), len(self)
        if not -count <= index < count:
            raise IndexError(
                f"[{type(self).__name__}] index {index} is out of range for {count} modules"
            )
        return list(self._modules)[index % count]

    def _renumber(self, modules: Iterable[Module]) -> None:
        self._modules = {str(i): module for i, module in enumerate(modules)}

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name(index), module)

    def __delitem__(self, index: int | slice) -> None:
        names = list(self._modules)
        for name in names[index] if isinstance(index, slice) else [self._name(index)]:
            delattr(self, name)
        self._renumber(list(self._modules.values()))

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self: S, module: Module) -> S:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self: S, modules: Iterable[Module]) -> S:
        """Add modules at the end."""
        if not isinstance(modules, Iterable):
            raise DTypeError(
                f"[{type(self).__name__}.extend] takes an iterable of modules, "
                f"got {type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def insert(self: S, index: int, module: Module) -> S:
        """Put a module before the one at `index`."""
        if not isinstance(module, Module):
            raise DTypeError(
                f"[{type(self).__name__}.insert] takes a Module, got {type(module).__name__}"
            )
        modules = list(self)
        if not -len(modules) <= index <= len(modules):
            raise IndexError(
                f"[{type(self).__name__}.insert] index {index} is out of range for {len(modules)}"
            )
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def pop(self, key: int | slice) -> Any:
        """Take a module out and return it."""
        found = self[key]  # type: ignore[index]
        del self[key]
        return found


class Sequential(_Numbered):
    """Modules that are called one after the other, each with what the one before it returned.

    >>> import undertow as ut
    >>> model = ut.nn.Sequential(ut.nn.Linear(3, 4), ut.nn.Identity(), ut.nn.Linear(4, 1))
    >>> model(ut.ones(2, 3)).shape
    (2, 1)
    >>> model[-1]
    Linear(in_features=4, out_features=1, bias=True)
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    @overload
    def __getitem__(self, index: slice) -> Sequential: ...
    @overload
    def __getitem__(self, index: int) -> Module: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._name(index)]

    def __add__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            raise DTypeError(
                f"[Sequential] only another Sequential can be added, got {type(other).__name__}"
            )
        return Sequential(*self, *other)

    def __iadd__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            raise DTypeError(
                f"[Sequential] only another Sequential can be added, got {type(other).__name__}"
            )
        return self.extend(list(other))

    def __mul__(self, times: int) -> Sequential:
        return Sequential(*list(self) * self._times(times))

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Sequential:
        return self.extend(list(self) * (self._times(times) - 1))

    def _times(self, times: Any) -> int:
        if not isinstance(times, int):
            raise DTypeError(f"[Sequential] is repeated an int of times, got {times!r}")
        if times <= 0:
            raise ValueError(f"[Sequential] is repeated at least once, got {times}")
        return times

    def forward(self, input: Any) -> Tensor:
        """The last module's output."""
        if not is_grad_enabled():
            from .evaluation import evaluated

            return evaluated(self._modules.values(), input)
        for module in self._modules.values():
            input = module(input)
        return input


class ModuleList(_Numbered):
    """A list of modules; it is not called itself.

    >>> import undertow as ut
    >>> layers = ut.nn.ModuleList([ut.nn.Linear(4, 4) for _ in range(3)])
    >>> len(layers), len(list(layers.parameters()))
    (3, 6)
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    @overload
    def __getitem__(self, index: slice) -> ModuleList: ...
    @overload
    def __getitem__(self, index: int) -> Module: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[self._name(index)]

    def __iadd__(self, other: Any) -> ModuleList:
        return self.extend(other)

    def __add__(self, other: Any) -> ModuleList:
        return ModuleList(chain(self, other))

    def __repr__(self) -> str:
        """As torch: equal neighbours are written once, `(0-2): 3 x Linear(…)`."""
        runs: list[list[Any]] = []  # first, last, text
        for i, module in enumerate(self):
            text = repr(module)
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        lines = []
        for first, last, text in runs:
            many = f"({first}-{last}): {last - first + 1} x " if last > first else f"({first}): "
            lines.append(many + text.replace("\n", "\n  "))
        inside = "\n  " + "\n  ".join(lines) + "\n" if lines else ""
        return f"{self._get_name()}({inside})"


class ModuleDict(Module):
    """Modules under names of one's own; it is not called itself.

    >>> import undertow as ut
    >>> heads = ut.nn.ModuleDict({"left": ut.nn.Linear(2, 1), "right": ut.nn.Linear(2, 1)})
    >>> list(heads)
    ['left', 'right']
    """

    _modules: dict[str, Module]  # type: ignore[assignment]

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Take all modules out."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Take a module out and return it."""
        found = self[key]
        del self[key]
        return found

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """The names and the modules."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add or replace modules, given as a mapping or as pairs."""
        for name, module in _pairs("ModuleDict.update", modules):
            self[name] = module


class ParameterList(Module):
    """A list whose tensors are parameters; other values are kept as they are.

    >>> import undertow as ut
    >>> weights = ut.nn.ParameterList([ut.ones(2), ut.ones(3)])
    >>> [tuple(p.shape) for p in weights.parameters()]
    [(2,), (3,)]
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _name(self, index: Any) -> str:
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"[ParameterList] index {index} is out of range for {len(self)}")
        return str(index % len(self))

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            made = type(self)()
            for i in range(*index.indices(len(self))):
                made.append(self[i])
            return made
        return getattr(self, self._name(index))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, self._name(index), _as_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def append(self, value: Any) -> ParameterList:
        """Add a value at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add values at the end."""
        if isinstance(values, Tensor) or not hasattr(values, "__iter__"):
            raise DTypeError(
                f"[ParameterList.extend] takes a list of tensors, got {type(values).__name__}"
            )
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        """One line per value."""
        return "\n".join(f"  ({i}): {_described(value)}" for i, value in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary whose tensors are parameters; other values are kept as they are.

    >>> import undertow as ut
    >>> gains = ut.nn.ParameterDict({"left": ut.ones(2), "right": ut.ones(2)})
    >>> list(gains.state_dict())
    ['left', 'right']
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _attribute(self, key: Any) -> str:
        if not isinstance(key, str):
            raise DTypeError(f"[ParameterDict] a key is a string, got {type(key).__name__}")
        return f"_param_{key}" if hasattr(type(self), key) else key

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, self._attribute(key))

    def __setitem__(self, key: str, value: Any) -> None:
        attribute = self._attribute(key)
        self._keys[key] = None
        setattr(self, attribute, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._attribute(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """Another dictionary with the same values."""
        return ParameterDict([(key, self[key]) for key in self])

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of a key, set to `default` first if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Take all values out."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Take a value out and return it."""
        found = self[key]
        del self[key]
        return found

    def popitem(self) -> tuple[str, Any]:
        """Take the last key and value out and return them."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or `default`."""
        return self[key] if key in self.keys() else default

    @classmethod
    def fromkeys(cls, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A dictionary with one value for all keys."""
        return cls(dict.fromkeys(keys, default))

    def keys(self) -> Any:
        """The keys."""
        return self._keys.keys()

    def items(self) -> Any:
        """The keys and the values."""
        return [(key, self[key]) for key in self._keys]

    def values(self) -> Any:
        """The values."""
        return [self[key] for key in self._keys]

    def update(self, parameters: Any) -> None:
        """Add or replace values, given as a mapping or as pairs; a dict's in the order of its keys.

        So the parameters have torch's order, by which optimizers number them.
        """
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            parameters = [(key, parameters[key]) for key in sorted(parameters)]
        for key, value in _pairs("ParameterDict.update", parameters):
            self[key] = value

    def extra_repr(self) -> str:
        """One line per value."""
        return "\n".join(f"  ({key}): {_described(value)}" for key, value in self.items())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: Any) -> ParameterDict:
        made = self.copy()
        made.update(other)
        return made

    def __ior__(self, other: Any) -> ParameterDict:
        self.update(other)
        return self


def _as_parameter(value: Any) -> Any:
    return (
        Parameter(value)
        if isinstance(value, Tensor) and not isinstance(value, Parameter)
        else value
    )


def _described(value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    size = "x".join(str(n) for n in value.shape)
    return f"{kind} containing: [{value.dtype} of size {size}]"


def _pairs(op: str, given: Any) -> Iterator[tuple[str, Any]]:
    """The names and values of a mapping, or of an iterable of pairs."""
    if hasattr(given, "items"):
        yield from given.items()
        return
    if not isinstance(given, Iterable):
        raise DTypeError(f"[{op}] takes a mapping or pairs, got {type(given).__name__}")
    for i, pair in enumerate(given):
        if not isinstance(pair, Iterable):
            raise DTypeError(f"[{op}] element {i} is no pair: {type(pair).__name__}")
        both = tuple(pair)
        if len(both) != 2:
            raise ValueError(f"[{op}] element {i} has length {len(both)}; 2 is required")
        yield both
