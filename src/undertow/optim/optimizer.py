"""Optimizer: parameters in groups, what is kept with each, hooks, and states that can be saved."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, ClassVar, TypeAlias, TypeVar

from ..core.modes import enable_grad, set_grad_enabled
from ..core.node import RemovableHandle
from ..core.recording import RECORDERS, changed, touched
from ..core.tensor import Tensor
from ..errors import ArgumentError, DTypeError

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]

ParamsT: TypeAlias = (
    Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
)  # parameters, groups of them, or named ones
Group: TypeAlias = dict[str, Any]
StateDict: TypeAlias = dict[str, Any]
Closure: TypeAlias = Callable[[], Any]
Hooks: TypeAlias = OrderedDict[int, Callable[..., Any]]
S = TypeVar("S", bound=Callable[..., Any])

_before_every_step: Hooks = OrderedDict()
_after_every_step: Hooks = OrderedDict()
_KINDS = (
    "step_pre",
    "step_post",
    "state_dict_pre",
    "state_dict_post",
    "load_state_dict_pre",
    "load_state_dict_post",
)


class _Required:
    """A default that is none: every group must give the value; written by optimisers of others."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before every step of every optimiser.

    >>> import undertow as ut
    >>> show = lambda optimizer, args, kwargs: print(type(optimizer).__name__, "steps")
    >>> with ut.optim.optimizer.register_optimizer_step_pre_hook(show):
    ...     ut.optim.SGD([ut.ones(2, requires_grad=True)]).step()
    SGD steps
    """
    return RemovableHandle(_before_every_step, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after every step of every optimiser.

    >>> import undertow as ut
    >>> show = lambda optimizer, args, kwargs: print(type(optimizer).__name__, "has stepped")
    >>> with ut.optim.optimizer.register_optimizer_step_post_hook(show):
    ...     ut.optim.SGD([ut.ones(2, requires_grad=True)]).step()
    SGD has stepped
    """
    return RemovableHandle(_after_every_step, hook)


class Optimizer:
    """Base of all optimisers.

    Args:
        params: Parameters, (name, parameter) pairs, or dicts of them: `{"params": …, "lr": 0.1}`.
        defaults: The options of groups that do not say otherwise.

    >>> import undertow as ut
    >>> weight, bias = ut.ones(2, requires_grad=True), ut.zeros(1, requires_grad=True)
    >>> groups = [{"params": [weight]}, {"params": [bias], "lr": 0.1}]
    >>> optimizer = ut.optim.SGD(groups, lr=0.5)
    >>> (weight.sum() + bias.sum()).backward()
    >>> optimizer.step()
    >>> weight, bias
    (tensor([0.5000, 0.5000], requires_grad=True), tensor([-0.1000], requires_grad=True))
    """

    scalars: ClassVar[dict[str, float]] = {"step": 0.0}  # numbers kept with a parameter: at first
    takes_complex: ClassVar[bool] = True  # parameters
    defaults: dict[str, Any]
    state: defaultdict[Any, dict[str, Any]]
    param_groups: list[Group]

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._make_hooks()
        if isinstance(params, Tensor):
            raise DTypeError(
                f"[{self._name}] params must be an iterable of Tensors or dicts, got a Tensor; "
                "put it into a list"
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ArgumentError(
                f"[{self._name}] optimizer got an empty parameter list; does the model have "
                "parameters, and was the iterator used before?"
            )
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)  # type: ignore[arg-type]

    @property
    def _name(self) -> str:
        return type(self).__name__

    # Steps --------------------------------------------------------------------------------
    def step(self, closure: Closure | None = None) -> Any:
        """Change the parameters once, by their gradients.

        Args:
            closure: Computes the loss again, with gradients; its value is returned.
        """
        raise NotImplementedError(f"[{self._name}] has no step()")

    def _evaluate(self, closure: Closure | None) -> Any:
        """The loss of a closure, with gradients; None without one."""
        if closure is None:
            return None
        with enable_grad():
            return closure()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or fill them with zeros."""
        for group in self.param_groups:
            for p in group["params"]:
                if RECORDERS:
                    touched(p)
                grad = p._grad
                if grad is None:
                    continue
                if set_to_none:
                    p._grad = None
                    continue
                if grad.grad_fn is None:
                    grad.requires_grad_(False)
                else:
                    grad.detach_()
                grad.zero_()

    # Groups -------------------------------------------------------------------------------
    def add_param_group(self, param_group: Group) -> None:
        """Add a group of parameters, `{"params": …}`, with options of its own.

        >>> import undertow as ut
        >>> optimizer = ut.optim.SGD([ut.ones(2, requires_grad=True)], lr=0.5)
        >>> optimizer.add_param_group({"params": ut.ones(3, requires_grad=True), "lr": 0.1})
        >>> [group["lr"] for group in optimizer.param_groups]
        [0.5, 0.1]
        """
        if not isinstance(param_group, dict):
            raise DTypeError(
                f"[{self._name}] a parameter group must be a dict, got {type(param_group).__name__}"
            )
        if "params" not in param_group:
            raise KeyError(f"[{self._name}] a parameter group needs the key 'params'")
        given = param_group["params"]
        if isinstance(given, set):
            raise DTypeError(
                f"[{self._name}] parameters need an order, which a set does not have; use a list"
            )
        listed = [given] if isinstance(given, Tensor) else list(given)
        names = [p[0] for p in listed if isinstance(p, tuple)]
        if names and len(names) != len(listed):
            raise ArgumentError(
                f"[{self._name}] either all parameters of a group have names or none, got "
                f"{len(names)} names for {len(listed)} parameters"
            )
        params = [p[1] if isinstance(p, tuple) else p for p in listed]
        for p in params:
            self._check_parameter(p)
        param_group["params"] = params
        if names:
            param_group["param_names"] = names
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ArgumentError(
                    f"[{type(self).__name__}] parameter group {len(self.param_groups)} didn't "
                    f"specify a value of required optimization parameter {name}"
                )
            param_group.setdefault(name, default)
        if len(set(params)) != len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; "
                "in future, this will cause an error",
                stacklevel=3,
            )
        for group in self.param_groups:
            if ("param_names" in group) is not bool(names):
                raise ArgumentError(
                    f"[{self._name}] either all parameter groups have names or none; cannot add "
                    f"one {'with' if names else 'without'} names"
                )
            if not set(group["params"]).isdisjoint(params):
                raise ArgumentError(
                    f"[{self._name}] some parameters appear in more than one parameter group"
                )
        self.param_groups.append(param_group)
        changed()

    def _check_parameter(self, p: Any) -> None:
        if not isinstance(p, Tensor):
            raise DTypeError(f"[{self._name}] can optimize Tensors only, got {type(p).__name__}")
        if p.is_complex() and not self.takes_complex:
            raise DTypeError(
                f"[{self._name}] does not support complex parameters; optimize view_as_real of them"
            )
        if not (self.defaults.get("differentiable") or p.is_leaf or p.retains_grad):
            raise ArgumentError(
                f"[{self._name}] can't optimize a non-leaf Tensor (shape {p.shape}, made by "
                f"{p.grad_fn}); use detach().requires_grad_()"
            )

    # Saving and loading -------------------------------------------------------------------
    def state_dict(self) -> StateDict:
        """What is needed to go on later: `{"state": {0: …}, "param_groups": [{…}]}`.

        Parameters are numbered in their order; the tensors are those of the optimiser itself.
        """
        for hook in self._hooks["state_dict_pre"].values():
            hook(self)
        numbers: dict[int, int] = {}
        groups: list[Group] = []
        for group in self.param_groups:
            start = sum(len(g["params"]) for g in groups)
            for i, p in enumerate(group["params"], start):
                numbers.setdefault(id(p), i)
            packed = {k: v for k, v in group.items() if k != "params"}
            groups.append({**packed, "params": [numbers[id(p)] for p in group["params"]]})
        states = {numbers[id(k)] if isinstance(k, Tensor) else k: v for k, v in self.state.items()}
        found: StateDict = {"state": states, "param_groups": groups}
        for hook in self._hooks["state_dict_post"].values():
            changed = hook(self, found)
            found = found if changed is None else changed
        return found

    def load_state_dict(self, state_dict: StateDict) -> None:
        """Go on from what `state_dict` gave: copies that have the parameters' dtype and device.

        The numbers that are kept with a parameter, such as that of its steps, stay as they are.
        """
        state_dict = state_dict.copy()
        for hook in self._hooks["load_state_dict_pre"].values():
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        groups, saved = self.param_groups, deepcopy(state_dict["param_groups"])
        sizes, saved_sizes = ([len(g["params"]) for g in gs] for gs in (groups, saved))
        if len(groups) != len(saved):
            raise ArgumentError(
                f"[{self._name}] loaded state dict has a different number of parameter groups: "
                f"{len(saved)}, expected {len(groups)}"
            )
        if sizes != saved_sizes:
            raise ArgumentError(
                f"[{self._name}] loaded state dict contains a parameter group that doesn't match "
                f"the size of optimizer's group: sizes {saved_sizes}, expected {sizes}"
            )
        ours = chain.from_iterable(g["params"] for g in groups)
        theirs = chain.from_iterable(g["params"] for g in saved)
        param_of = dict(zip(theirs, ours, strict=True))
        state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            p = param_of.get(key)
            state[key if p is None else p] = value if p is None else self._fitted(value, p)
        for group, new in zip(groups, saved, strict=True):
            new["params"] = group["params"]
            if "param_names" in group:
                new.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._hooks["load_state_dict_post"].values():
            hook(self)

    def _fitted(self, value: Any, p: Tensor, key: Any = None) -> Any:
        """A copy of what was saved for a parameter, with its dtype and device."""
        if isinstance(value, Tensor):
            if key in self.scalars:
                return value.detach().clone()
            dtype = p.dtype if p.is_floating_point() else value.dtype
            return value.detach().to(device=p.device, dtype=dtype, copy=True)
        if isinstance(value, dict):
            return {k: self._fitted(v, p, k) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self._fitted(v, p) for v in value)
        return value

    @staticmethod
    def _group_tensors_by_device_and_dtype(
        tensorlistlist: list[list[Any]], with_indices: bool = False
    ) -> dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]]:
        """Lists of parameters and their states, split by the parameters' devices and dtypes."""
        groups: dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]] = {}
        for i, row in enumerate(zip(*tensorlistlist, strict=True)):
            key = (row[0].device, row[0].dtype)
            lists, indices = groups.setdefault(key, ([[] for _ in row], []))
            for chosen, value in zip(lists, row, strict=True):
                chosen.append(value)
            if with_indices:
                indices.append(i)
        return groups

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        changed()
        self.__dict__.update(state)
        if "_hooks" not in self.__dict__:
            self._make_hooks()
        for group in self.param_groups:  # options that are younger than what was saved
            for name, default in self.defaults.items():
                group.setdefault(name, default)

    def __repr__(self) -> str:
        lines = [f"{self._name} ("]
        for i, group in enumerate(self.param_groups):
            lines += ([""] if i else []) + [f"Parameter Group {i}"]
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])

    # Hooks --------------------------------------------------------------------------------
    def _make_hooks(self) -> None:
        self._hooks: dict[str, Hooks] = {kind: OrderedDict() for kind in _KINDS}
        cls: Any = type(self)
        if not hasattr(cls.step, "hooked"):
            cls.step = _with_hooks(cls.step)

    def _hang(self, kind: str, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        hooks = self._hooks[kind]
        handle = RemovableHandle(hooks, hook)
        if prepend:
            hooks.move_to_end(next(reversed(hooks)), last=False)
        return handle

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before a step; it may return other arguments."""
        return self._hang("step_pre", hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after a step."""
        return self._hang("step_post", hook)

    def register_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer)` before `state_dict`."""
        return self._hang("state_dict_pre", hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after `state_dict`; it may return another."""
        return self._hang("state_dict_post", hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before loading; it may return another to load."""
        return self._hang("load_state_dict_pre", hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer)` after loading."""
        return self._hang("load_state_dict_post", hook, prepend)


def _with_hooks(step: S) -> S:
    """A class's step between the hooks of all optimisers and the optimiser's own."""

    @functools.wraps(step)
    def hooked(*args: Any, **kwargs: Any) -> Any:
        self = args[0]
        own = self._hooks
        if _before_every_step or own["step_pre"]:
            for hook in [*_before_every_step.values(), *own["step_pre"].values()]:
                changed = hook(self, args, kwargs)
                if changed is None:
                    continue
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise ArgumentError(
                        f"[{self._name}] a hook before step() must return None or (args, kwargs), "
                        f"got {changed!r}"
                    )
                args, kwargs = changed
        found = step(*args, **kwargs)
        if _after_every_step or own["step_post"]:
            for hook in [*own["step_post"].values(), *_after_every_step.values()]:
                hook(self, args, kwargs)
        return found

    hooked.hooked = True  # type: ignore[attr-defined]
    return hooked  # type: ignore[return-value]


# What optimisers of other packages import from here; each way to step is the same one here.
def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Whether to use a fused step, and one over lists of parameters: neither, unasked."""
    return False, False


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Devices whose steps a CUDA graph can hold."""
    return []


def _use_grad_for_differentiable(step: S) -> S:
    """A step that records gradients only if the optimiser is `differentiable`."""

    @functools.wraps(step)
    def stepped(self: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(bool(self.defaults.get("differentiable", False))):
            return step(self, *args, **kwargs)

    return stepped  # type: ignore[return-value]
