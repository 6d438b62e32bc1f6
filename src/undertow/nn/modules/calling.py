"""What happens around the `forward` of a module: its hooks, and the path that an error names.

Note [backward hooks]
A full backward hook wants the gradients of a module's inputs and outputs, while the graph knows
only operations. So the inputs and the outputs pass through an identity each (`_Border`), whose two
nodes stand at the borders of the module: the one behind the outputs is reached first in the
backward pass and keeps what arrives there, the one before the inputs calls the hooks with both. A
module whose inputs need no gradient has no second border, and its hooks are called at the first.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ...autograd.function import Function
from ...core.node import RemovableHandle
from ...core.tensor import Tensor
from ...errors import UndertowError

if TYPE_CHECKING:
    from .module import Module


class Hook:
    """A function that somebody registered, and how it wants to be called."""

    def __init__(self, fn: Callable[..., Any], **options: Any) -> None:
        self.fn = fn
        self.options = options

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.fn(*args, **kwargs)

    def wants(self, option: str) -> bool:
        """Whether it was registered with that option."""
        return bool(self.options.get(option))


class _Listed(dict[int, Any]):
    """The hooks of an event; a function that a program writes into it becomes one."""

    def __setitem__(self, key: int, fn: Any) -> None:
        super().__setitem__(key, fn if isinstance(fn, Hook) else Hook(fn))


class Hooks:
    """All hooks of one module, by what they wait for."""

    def __init__(self) -> None:
        self.forward_pre: dict[int, Hook] = _Listed()
        self.forward: dict[int, Hook] = _Listed()
        self.backward_pre: dict[int, Hook] = _Listed()
        self.backward: dict[int, Hook] = _Listed()
        self.backward_old: dict[int, Hook] = _Listed()
        self.state_dict_pre: dict[int, Hook] = _Listed()
        self.state_dict: dict[int, Hook] = _Listed()
        self.load_pre: dict[int, Hook] = _Listed()
        self.load: dict[int, Hook] = _Listed()

    def add(
        self, event: str, fn: Callable[..., Any], prepend: bool, **options: Any
    ) -> RemovableHandle:
        """Register a hook, as the last or (`prepend`) as the first of its event."""
        if not callable(fn):
            raise TypeError(f"[register_{event}_hook] a hook is callable, got {type(fn).__name__}")
        return _add(getattr(self, event), Hook(fn, **options), prepend)


class HooksOf:
    """One event's hooks as an attribute, by the name that programs know: `_forward_hooks`."""

    def __init__(self, event: str) -> None:
        self.event = event

    def __get__(self, module: Module | None, kind: Any = None) -> Any:
        return self if module is None else getattr(module._hooked(), self.event)

    def __set__(self, module: Module, hooks: dict[int, Any]) -> None:
        kept = _Listed()
        for key, fn in hooks.items():
            kept[key] = fn
        setattr(module._hooked(), self.event, kept)


def _add(hooks: dict[int, Hook], hook: Hook, prepend: bool) -> RemovableHandle:
    before = dict(hooks)
    if prepend:
        hooks.clear()
    handle = RemovableHandle(hooks, hook)  # type: ignore[arg-type]
    if prepend:
        hooks.update(before)
    return handle


# Hooks of all modules ----------------------------------------------------------------------------
GLOBAL_CALLS: dict[int, Hook] = {}  # with the option `event`
_REGISTRATIONS: dict[str, dict[int, Hook]] = {"module": {}, "parameter": {}, "buffer": {}}
_NO_HOOKS = Hooks()


def registered(what: str, module: Module, name: str, value: Any) -> Any:
    """What is registered under `name`: what the last global hook answered, or the value."""
    for hook in list(_REGISTRATIONS[what].values()):
        answer = hook(module, name, value)
        value = value if answer is None else answer
    return value


def _global(event: str, fn: Callable[..., Any], **options: Any) -> RemovableHandle:
    return _add(GLOBAL_CALLS, Hook(fn, event=event, **options), False)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, args)` before the forward of every module."""
    return _global("forward_pre", hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after the forward of every module."""
    return _global("forward", hook, with_kwargs=with_kwargs, always_call=always_call)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_output)` before the backward of every module."""
    return _global("backward_pre", hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` after the backward of every module."""
    return _global("backward", hook)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook` when the last operation of any module has its gradients; deprecated in torch."""
    return _global("backward_old", hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, submodule)` when a module is registered."""
    return _add(_REGISTRATIONS["module"], Hook(hook), False)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, parameter)` when a parameter is registered."""
    return _add(_REGISTRATIONS["parameter"], Hook(hook), False)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, buffer)` when a buffer is registered."""
    return _add(_REGISTRATIONS["buffer"], Hook(hook), False)


# A call ------------------------------------------------------------------------------------------
def called(module: Module, args: Any, kwargs: dict[str, Any]) -> Any:
    """The output of `forward`, between all hooks."""
    own = module._hooks or _NO_HOOKS

    def hooks(event: str) -> list[Hook]:
        everywhere = [h for h in list(GLOBAL_CALLS.values()) if h.options["event"] == event]
        return [*everywhere, *getattr(own, event).values()]

    due = hooks("forward")  # those that have not been called yet
    result = None
    try:
        for hook in hooks("forward_pre"):
            args, kwargs = _before(hook, module, args, kwargs)
        backward, before = hooks("backward"), hooks("backward_pre")
        borders = BackwardHooks(module, backward, before) if backward or before else None
        if borders is not None:
            args = borders.at_inputs(args)
        result = module.forward(*args, **kwargs)
        while due:
            hook = due.pop(0)
            if hook.wants("with_kwargs"):
                answer = hook(module, args, kwargs, result)
            else:
                answer = hook(module, args, result)
            result = result if answer is None else answer
        if borders is not None:
            result = borders.at_outputs(result)
        old = hooks("backward_old")
        if old:
            _old_backward(module, old, result)
        return result
    except Exception:
        for hook in [h for h in due if h.wants("always_call")]:
            more = (kwargs,) if hook.wants("with_kwargs") else ()
            try:
                hook(module, args, *more, result)
            except Exception as second:  # the first error is the one to report
                warnings.warn(
                    f"a forward hook of {type(module).__name__} with always_call=True raised "
                    f"{second!r} while another error was on its way",
                    stacklevel=2,
                )
        raise


def _before(hook: Hook, module: Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, Any]:
    if hook.wants("with_kwargs"):
        answer = hook(module, args, kwargs)
        if answer is None:
            return args, kwargs
        if isinstance(answer, tuple) and len(answer) == 2:
            return answer
        raise RuntimeError(
            "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
            f"but got {answer}."
        )
    answer = hook(module, args)
    if answer is None:
        return args, kwargs
    return answer if isinstance(answer, tuple) else (answer,), kwargs


def _old_backward(module: Module, hooks: list[Hook], result: Any) -> None:
    """What `register_backward_hook` promises: the hooks of the node that made the result."""
    while not isinstance(result, Tensor):
        result = next(iter(result.values() if isinstance(result, dict) else result))
    node = result.grad_fn
    if node is not None:
        for hook in hooks:
            node.register_hook(lambda to, of, hook=hook: hook(module, to, of))


class _Border(Function):
    """The identity, whose node stands at a border of a module."""

    @staticmethod
    def forward(ctx: Any, *values: Tensor) -> Any:
        passed = [(v.view_as(v), v.requires_grad) for v in values]
        ctx.mark_non_differentiable(*[v for v, wanted in passed if not wanted])
        return tuple([v for v, _ in passed])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return grads


class BackwardHooks:
    """The borders of one call of a module; see Note [backward hooks]."""

    def __init__(self, module: Module, hooks: list[Hook], before: list[Hook]) -> None:
        self.module = module
        self.hooks = hooks
        self.before = before
        self.places: list[int] | None = None  # the arguments that are tensors
        self.count = 0
        self.arrived: Any = None  # the gradients of the outputs, until the inputs' are there

    def at_inputs(self, args: Any) -> Any:
        """The arguments, behind the border."""
        out, self.places, node = self._cross(args)
        self.count = len(args)
        if node is None:
            self.places = None
        else:
            node.register_hook(self._inputs_done)
        return out

    def at_outputs(self, result: Any) -> Any:
        """The output, before the border; anything but tensors and tuples of them goes past it."""
        single = not isinstance(result, tuple)
        if single and not isinstance(result, Tensor):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of "
                f"Tensors but received {type(result)}",
                stacklevel=2,
            )
        out, places, node = self._cross((result,) if single else result)
        if node is not None:
            count = len(out)
            node.register_prehook(lambda grads: self._outputs_arrived(grads, places, count))
        return out[0] if single else out

    def _cross(self, values: Any) -> tuple[Any, list[int], Any]:
        places = [i for i, v in enumerate(values) if isinstance(v, Tensor)]
        given = [values[i] for i in places]
        if not any(v.requires_grad for v in given):
            return values, places, None
        passed = _Border.apply(*given)
        made = [v.grad_fn for v in passed if v.grad_fn is not None]
        if not made:  # gradients are switched off
            return values, places, None
        out = list(values)
        for i, v in zip(places, passed, strict=True):
            out[i] = v
        kind = type(values)
        return (kind(*out) if hasattr(values, "_fields") else kind(out)), places, made[0]

    def _outputs_arrived(self, grads: Any, places: list[int], count: int) -> Any:
        spread: Any = _spread(grads, places, count)
        for hook in self.before:
            spread = _changed(hook(self.module, spread), spread, "grad_output")
        self.arrived = spread
        if self.places is None:  # no input has a gradient to wait for
            nothing = (None,) * self.count
            for hook in self.hooks:
                if hook(self.module, nothing, spread) is not None:
                    raise RuntimeError(
                        "backward hook for Modules where no input requires gradient should always "
                        "return None or None for all gradients."
                    )
            self.arrived = None
        return tuple([spread[i] for i in places])

    def _inputs_done(self, grads: Any, _: Any) -> Any:
        if self.arrived is None or self.places is None:
            return None  # no gradient came through the outputs: by a second derivative, say
        spread = _spread(grads, self.places, self.count)
        for hook in self.hooks:
            spread = _changed(hook(self.module, spread, self.arrived), spread, "grad_input")
        self.arrived = None
        return tuple([spread[i] for i in self.places])


def _spread(grads: Any, places: list[int], count: int) -> tuple[Any, ...]:
    """The gradients at the places of their tensors among `count` values."""
    out: list[Any] = [None] * count
    for i, g in zip(places, grads, strict=True):
        out[i] = g
    return tuple(out)


def _changed(answer: Any, before: tuple[Any, ...], what: str) -> tuple[Any, ...]:
    if answer is None:
        return before
    answer = answer if isinstance(answer, tuple) else (answer,)
    if len(answer) != len(before):
        raise RuntimeError(
            f"backward hook returned an invalid number of {what}, got {len(answer)}, "
            f"but expected {len(before)}"
        )
    return answer


# Errors ------------------------------------------------------------------------------------------
def with_path(error: Exception, module: Module) -> None:
    """Say in an error in which module it was raised: the path from the outermost one called.

    Each call on the way out puts the name of the module below in front of the path so far.
    """
    below, path, where, message = getattr(error, "_raised_in", (None, "", None, None))
    if below is None:
        where = repr(module).partition("\n")[0]
        where = f"{where}…)" if where.endswith("(") else where
        message = error.args[0] if error.args else None
    elif below is not module:
        path = ".".join([name for name in (_name_in(module, below), path) if name])
    note = f"in {path}: {where}" if path else f"in {where}"
    if isinstance(error, UndertowError) and isinstance(message, str):
        error.args = (f"{message}\n  {note}", *error.args[1:])
    else:
        notes: list[str] = getattr(error, "__notes__", [])
        if below is not None and notes:
            notes.pop()
        error.add_note(note)
    error._raised_in = (module, path, where, message)  # type: ignore[attr-defined]


def _name_in(module: Module, below: Any) -> str:
    found: Iterator[str] = (name for name, child in module.named_modules() if child is below)
    return next(found, "")
