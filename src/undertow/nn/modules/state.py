"""The state of a tree of modules as a dictionary, and back."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.modes import no_grad
from ...core.other_kinds import OtherKind
from ...core.tensor import Tensor
from ...errors import ArgumentError, DTypeError, FileError
from ..parameter import Parameter, is_lazy
from .calling import Hooks

if TYPE_CHECKING:
    from .module import Module

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class State(OrderedDict[str, Any]):
    """A state_dict: paths to tensors, in order, and the versions of the modules' layouts."""

    _metadata: dict[str, Any]

    def __reduce__(self) -> Any:
        return OrderedDict, (list(self.items()),), {"_metadata": self._metadata}

    def copy(self) -> State:
        """Another dictionary with the same tensors."""
        made = State(self)
        made._metadata = dict(self._metadata)
        return made


class IncompatibleKeys(NamedTuple):
    """The names that a load with `strict=False` could not bring together."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        missing, unexpected = self.missing_keys, self.unexpected_keys
        return f"_IncompatibleKeys(missing_keys={missing}, unexpected_keys={unexpected})"


def state_of(
    module: Module, destination: Any = None, prefix: str = "", keep_vars: bool = False
) -> Any:
    """Everything at and below a module by its path."""
    if destination is None:
        destination = State()
        destination._metadata = OrderedDict()
    metadata = {"version": module._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = metadata
    hooks = module._hooks
    if hooks is not None:
        for hook in list(hooks.state_dict_pre.values()):
            hook(module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(
                destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
            )
    if hooks is not None:
        for hook in list(hooks.state_dict.values()):
            answer = hook(module, destination, prefix, metadata)
            if answer is not None:
                if not hook.wants("may_return"):
                    raise RuntimeError("state_dict post-hook must return None")
                destination = answer
    return destination


def own_state(module: Module) -> dict[str, Any]:
    """The parameters and persistent buffers of one module."""
    skipped = module._non_persistent_buffers_set
    buffers = {n: b for n, b in module._buffers.items() if n not in skipped}
    both = {**module._parameters, **buffers}
    return {name: value for name, value in both.items() if value is not None}


def _has_extra(module: Module) -> bool:
    from .module import Module as Base

    return type(module).get_extra_state is not Base.get_extra_state


def save_own(module: Module, destination: Any, prefix: str, keep_vars: bool) -> None:
    """Write the state of one module."""
    for name, value in own_state(module).items():
        destination[prefix + name] = value if keep_vars or is_lazy(value) else value.detach()
    if _has_extra(module):
        destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = module.get_extra_state()


def load_own(
    module: Module,
    state: Any,
    prefix: str,
    metadata: dict[str, Any],
    strict: bool,
    missing: list[str],
    unexpected: list[str],
    errors: list[str],
) -> None:
    """Take the state of one module, and note what does not fit."""
    if module._hooks is not None:
        for hook in list(module._hooks.load_pre.values()):
            first = (module,) if hook.wants("with_module") else ()
            hook(*first, state, prefix, metadata, strict, missing, unexpected, errors)
    assign = metadata.get("assign_to_params_buffers", False)
    own = own_state(module)
    for name, held in own.items():
        key = prefix + name
        if key in state:
            problem = _load_one(module, name, key, held, state[key], assign)
            if problem is not None:
                errors.append(problem)
        elif strict:
            missing.append(key)
    extra = prefix + _EXTRA_STATE_KEY_SUFFIX
    from .module import Module as Base

    if type(module).set_extra_state is not Base.set_extra_state:
        if extra in state:
            module.set_extra_state(state[extra])
        elif strict:
            missing.append(extra)
    elif strict and extra in state:
        unexpected.append(extra)
    if strict:
        for key in state:
            if key.startswith(prefix) and key != extra:
                first, *rest = key[len(prefix) :].split(".", 1)
                known = first in module._modules if rest else first in own
                if not known:
                    unexpected.append(key)


def _load_one(
    module: Module, name: str, key: str, held: Any, value: Any, assign: bool
) -> str | None:
    """Copy or assign one tensor; what is wrong with it, if it does not fit."""
    alike: Any = isinstance(held, OtherKind) and type(value) is type(held)
    if alike and value.shape == held.shape:
        setattr(module, name, value if assign else value.clone())
        return None
    if not isinstance(value, Tensor):
        return f'"{key}" is a {type(value).__name__} in the state_dict, a tensor is expected.'
    if is_lazy(value):
        if is_lazy(held):  # neither has a shape: there is nothing to take
            return None
        return f'"{key}" has no shape yet in the state_dict: call the saved module once first.'
    if is_lazy(held):
        with no_grad():
            held.materialize(value.shape)
    if held.ndim == 0 and value.shape == (1,):  # as very old files have them
        value = value[0]
    if held.shape != value.shape:
        return (
            f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
            f"the shape in current model is {held.shape}."
        )
    if assign:
        if isinstance(held, Parameter) and not isinstance(value, Parameter):
            value = Parameter(value, requires_grad=held.requires_grad)
        setattr(module, name, value)
    else:
        if held.is_meta and not value.is_meta:
            warnings.warn(
                f"for {key}: copying from the state_dict to a tensor on the device 'meta' does "
                "nothing; pass assign=True to take what is there",
                stacklevel=2,
            )
        with no_grad():
            held.copy_(value)
    return None


def load_state(
    module: Module, state: Mapping[str, Any], strict: bool, assign: bool
) -> IncompatibleKeys:
    """Take the state of a whole tree, or raise an error that lists everything that is wrong."""
    if not isinstance(state, Mapping):
        raise DTypeError(
            f"[load_state_dict] expects a state_dict, got {type(state).__name__}; "
            "give model.state_dict(), or what ut.load() read"
        )
    missing: list[str] = []
    unexpected: list[str] = []
    errors: list[str] = []
    versions = getattr(state, "_metadata", None)
    copied: Any = OrderedDict(state)
    if versions is not None:
        copied._metadata = versions

    def load(below: Module, part: Any, prefix: str) -> None:
        metadata = {} if versions is None else dict(versions.get(prefix[:-1], {}))
        if assign:
            metadata["assign_to_params_buffers"] = True
        below._load_from_state_dict(part, prefix, metadata, True, missing, unexpected, errors)
        for name, child in below._modules.items():
            if child is not None:
                path = f"{prefix}{name}."
                inside = {k: v for k, v in part.items() if k.startswith(path)}
                load(child, inside, path)  # noqa: F821 - it is deleted when all is done
        found = IncompatibleKeys(missing, unexpected)
        if below._hooks is not None:
            for hook in list(below._hooks.load.values()):
                if hook(below, found) is not None:
                    raise RuntimeError(
                        "hooks registered with register_load_state_dict_post_hook return nothing: "
                        "they change the lists that they are given"
                    )

    load(module, copied, "")
    del load  # it holds itself and the whole state, which should go now
    if strict:
        for what, names in (("Unexpected", unexpected), ("Missing", missing)):
            if names:
                listed = ", ".join(f'"{name}"' for name in names)
                errors.insert(0, f"{what} key(s) in state_dict: {listed}.")
    if errors:
        lines = "".join(f"\n    {line}" for line in errors)
        raise ArgumentError(f"Error(s) in loading state_dict for {type(module).__name__}:{lines}")
    return IncompatibleKeys(missing, unexpected)


# What a module of torch's has in the place of `_hooks`.
TORCH_HOOKS = """
_backward_pre_hooks _backward_hooks _forward_hooks _forward_hooks_with_kwargs
_forward_hooks_always_called _forward_pre_hooks _forward_pre_hooks_with_kwargs _state_dict_hooks
_state_dict_pre_hooks _load_state_dict_pre_hooks _load_state_dict_post_hooks
""".split()  # noqa: SIM905


# Our events, and with which names torch marks hooks that have an option.
_EVENTS: dict[str, tuple[str, dict[str, str]]] = {
    "_forward_pre_hooks": ("forward_pre", {"with_kwargs": "_forward_pre_hooks_with_kwargs"}),
    "_forward_hooks": (
        "forward",
        {
            "with_kwargs": "_forward_hooks_with_kwargs",
            "always_call": "_forward_hooks_always_called",
        },
    ),
    "_backward_pre_hooks": ("backward_pre", {}),
    "_backward_hooks": ("backward", {}),
    "_state_dict_pre_hooks": ("state_dict_pre", {}),
    "_state_dict_hooks": ("state_dict", {}),
    "_load_state_dict_post_hooks": ("load", {}),
}


def as_ours(state: dict[str, Any]) -> dict[str, Any]:
    """The state of a module of ours, from one of torch's."""
    other = {*TORCH_HOOKS, "_is_full_backward_hook", "_flat_weights", "_flat_weights_names"}
    found = {name: value for name, value in state.items() if name not in other}
    if state.get("_load_state_dict_pre_hooks"):
        raise FileError("[load] the file has a module with hooks of load_state_dict; remove them")
    if any(state.get(name) for name in _EVENTS):
        hooks = Hooks()
        for name, (event, options) in _EVENTS.items():
            if name == "_backward_hooks" and state.get("_is_full_backward_hook") is False:
                event = "backward_old"
            for key, fn in (state.get(name) or {}).items():
                given = {option: key in (state.get(of) or ()) for option, of in options.items()}
                hooks.add(event, fn, False, **given)
        found["_hooks"] = hooks
    return found


def hooks_as_torchs(module: Module) -> dict[str, Any]:
    """The hooks of a module, as the state of one of torch's has them."""
    found: dict[str, Any] = {name: OrderedDict() for name in TORCH_HOOKS}
    hooks = module._hooks
    found["_is_full_backward_hook"] = None
    if hooks is None:
        return found
    if hooks.load_pre:
        raise FileError(
            f"[save] the {type(module).__name__} has hooks of load_state_dict, which files do not "
            "hold: remove them, or save the state_dict()"
        )
    for name, (event, options) in _EVENTS.items():
        for key, hook in getattr(hooks, event).items():
            found[name][key] = hook.fn
            for option, of in options.items():
                if hook.wants(option):
                    found[of][key] = True
    for key, hook in hooks.backward_old.items():
        found["_backward_hooks"][key] = hook.fn
    if found["_backward_hooks"]:
        found["_is_full_backward_hook"] = not hooks.backward_old
    return found
