"""Parameters that are computed from others: `register_parametrization` and what undoes it.

Note [parametrized classes]
A parametrized module gets a class of its own, a subclass of the one it had, with a property for
each of its parametrized tensors: reading `module.weight` computes it. The class is made anew when
the list of those names changes, so that copies of a module never share a changing class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ...core.modes import no_grad
from ...core.tensor import Tensor
from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

_cache: dict[tuple[int, str], Any] | None = None  # None: every reading computes


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor at most once within a `with` block.

    >>> import undertow as ut
    >>> with ut.nn.utils.parametrize.cached():
    ...     pass
    """
    global _cache
    outer, _cache = _cache, _cache if _cache is not None else {}
    try:
        yield
    finally:
        _cache = outer


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, called one after the other, and what they start from.

    It holds `original`, or `original0`, `original1` … where the first takes several tensors.
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        with no_grad():
            found: Any = original.detach()
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with suppress(NotImplementedError):
                        found = module.right_inverse(found)
        self.is_tensor = isinstance(found, Tensor)
        parts = [found] if self.is_tensor else found
        if not isinstance(parts, Sequence) or not all(isinstance(p, Tensor) for p in parts):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors, got "
                f"{type(found).__name__}"
            )
        self.ntensors = len(parts)
        before = original.detach()
        if self.is_tensor:
            _same_kind(before, found)
        for name, part in zip(self._names(), parts, strict=True):
            if isinstance(original, Parameter) and self.is_tensor:
                original.data = part.detach()
                self.register_parameter(name, original)
            elif isinstance(original, Parameter):
                self.register_parameter(name, Parameter(part.detach(), original.requires_grad))
            else:
                self.register_buffer(name, part)
        if not unsafe:
            _alike(before, self(), "forward", self)

    def _names(self) -> list[str]:
        return ["original"] if self.is_tensor else [f"original{i}" for i in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Change the originals so that the tensor becomes `value`: what an assignment does."""
        with no_grad():
            found: Any = value
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                found = module.right_inverse(found)
            parts = [found] if self.is_tensor else found
            if len(parts) != self.ntensors:
                raise ValueError(
                    f"'right_inverse' must return {self.ntensors} tensors, got {len(parts)}"
                )
            for name, part in zip(self._names(), parts, strict=True):
                held = getattr(self, name)
                _same_kind(held, part)
                held.data = part.detach().clone()

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        """The tensor."""
        first, *rest = list(self)
        x = first(*[getattr(self, name) for name in self._names()])
        for module in rest:
            x = module(x)
        return x


def _same_kind(before: Tensor, after: Tensor) -> None:
    """A right_inverse may give another shape, but no other dtype and no other device."""
    if after.dtype is not before.dtype or after.device != before.device:
        raise ValueError(
            f"'right_inverse' may not change the dtype or the device, got {after.dtype} on "
            f"{after.device} for {before.dtype} on {before.device}"
        )


def _alike(before: Tensor, after: Any, what: str, where: Module) -> None:
    if not isinstance(after, Tensor):
        raise ValueError(
            f"A parametrization must return a tensor. Got {type(after).__name__} from {what}"
        )
    if after.dtype is not before.dtype or after.shape != before.shape:
        raise ValueError(
            "Registering a parametrization may not change the dtype or the shape of the tensor, "
            "unless `unsafe=True` is passed.\n"
            f"original: {before.dtype} of shape {before.shape}\n"
            f"{what}: {after.dtype} of shape {after.shape}\nin {type(where).__name__}"
        )


# The class of a parametrized module; see Note [parametrized classes] -----------------------------
class _Parametrized:
    """The mark of these classes, and how they are copied and pickled."""

    _names: tuple[str, ...]
    _before: type[Module]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _restored, (self._before, self._names), self.__dict__


def _restored(kind: type[Module], names: tuple[str, ...]) -> Module:
    module = kind.__new__(kind)
    module.__class__ = _class_with(kind, names)
    return module


def _class_with(kind: type[Module], names: tuple[str, ...]) -> type[Module]:
    """A subclass whose tensors of those names are computed."""
    fields: dict[str, Any] = {name: _computed(name) for name in names}
    fields |= {"_names": names, "_before": kind, "__module__": kind.__module__}
    return type(f"Parametrized{kind.__name__}", (_Parametrized, kind), fields)


def _computed(name: str) -> property:
    def get(self: Module) -> Tensor:
        parametrization: Any = self.parametrizations[name]
        if _cache is None:
            return parametrization()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = parametrization()
        return _cache[key]

    def put(self: Module, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, put)


def type_before_parametrizations(module: Module) -> type[Module]:
    """The class that a module had before it was parametrized."""
    return module._before if isinstance(module, _Parametrized) else type(module)


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module has parametrizations, or one of that name.

    >>> import undertow as ut
    >>> ut.nn.utils.parametrize.is_parametrized(ut.nn.Linear(2, 1))
    False
    """
    if not isinstance(module, _Parametrized):
        return False
    return tensor_name is None or tensor_name in module._names


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute a parameter or buffer of a module by `parametrization` from now on.

    The tensor that was there, or what `parametrization.right_inverse` makes of it, is learned in
    its place, as `parametrizations.<name>.original`. Several are called one after the other.

    >>> import undertow as ut
    >>> class Symmetric(ut.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).T
    >>> layer = ut.nn.Linear(3, 3)
    >>> _ = ut.nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.T).all())
    True
    >>> list(layer.state_dict())
    ['bias', 'parametrizations.weight.original']
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        held: Any = module.parametrizations[tensor_name]
        if not unsafe:
            now = getattr(module, tensor_name)
            then = parametrization(now)
            _alike(now, then, "forward", parametrization)
            if hasattr(parametrization, "right_inverse"):
                with suppress(NotImplementedError):
                    _alike(
                        now, parametrization.right_inverse(then), "right_inverse", parametrization
                    )
        held.append(parametrization)
        held.unsafe |= unsafe
    elif tensor_name in module._parameters or tensor_name in module._buffers:
        original = getattr(module, tensor_name)
        held = ParametrizationList([parametrization], original, unsafe)
        delattr(module, tensor_name)
        kind = type_before_parametrizations(module)
        names = module._names if isinstance(module, _Parametrized) else ()
        if not names:
            module.parametrizations = ModuleDict()
        module.parametrizations[tensor_name] = held
        module.__class__ = _class_with(kind, (*names, tensor_name))
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    return module


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Make a tensor what it was before, with its computed value or (False) the original one."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrized: Any = module
    held = parametrized.parametrizations[tensor_name]
    with no_grad():
        value = getattr(module, tensor_name).detach()
    if held.is_tensor:
        original = held.original
        if leave_parametrized:
            if isinstance(original, Parameter):
                original.data = value
            else:
                original = value
    elif leave_parametrized:
        first = held.original0
        learned = isinstance(first, Parameter)
        original = Parameter(value, first.requires_grad) if learned else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    names = tuple([name for name in parametrized._names if name != tensor_name])
    kind = parametrized._before
    del module.parametrizations[tensor_name]
    module.__class__ = _class_with(kind, names) if names else kind
    if not names:
        del module.parametrizations
    if isinstance(original, Parameter):
        module.register_parameter(tensor_name, original)
    else:
        module.register_buffer(tensor_name, original)
    return module


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Give a module the parametrizations of another, or that of one tensor, and what they learn.

    Both modules share them afterwards. A tensor that `to_module` does not have is made.

    >>> import undertow as ut
    >>> from undertow.nn.utils import parametrize
    >>> old, new = ut.nn.Linear(2, 2), ut.nn.Linear(2, 2)
    >>> _ = parametrize.register_parametrization(old, "weight", ut.nn.Tanh())
    >>> _ = parametrize.transfer_parametrizations_and_params(old, new)
    >>> new.parametrizations.weight.original is old.parametrizations.weight.original
    True
    """
    if not is_parametrized(from_module):
        return to_module
    given: Any = from_module.parametrizations
    for name in list(given) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in given[name]:
            register_parametrization(to_module, name, parametrization)
        made: Any = to_module.parametrizations[name]
        for part in given[name]._names():
            setattr(made, part, getattr(given[name], part))
    return to_module
