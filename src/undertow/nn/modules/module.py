"""`Module`: parameters, buffers and modules in a tree, and a `forward`.

What happens around a call (hooks, the path in an error) is `calling.py`; what the state of a tree
is, and how it is taken back, `state.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, Protocol, TypeVar

from ...core.modes import no_grad
from ...core.node import RemovableHandle
from ...core.notebook import as_html
from ...core.other_kinds import OtherKind
from ...core.recording import changed
from ...core.tensor import Tensor
from ...dtypes import DType
from ...errors import ArgumentError, DTypeError
from ..parameter import Buffer, Parameter, is_lazy
from .calling import (
    GLOBAL_CALLS,
    Hooks,
    HooksOf,
    called,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
    registered,
    with_path,
)
from .state import (
    _EXTRA_STATE_KEY_SUFFIX as _EXTRA_STATE_KEY_SUFFIX,  # transformers asks for it here
)
from .state import IncompatibleKeys, as_ours, load_state, state_of

T = TypeVar("T", bound="Module")
P = ParamSpec("P")
R = TypeVar("R", covariant=True)
_REGISTERS = ("_parameters", "_buffers", "_modules")
_IncompatibleKeys = IncompatibleKeys  # torch's name of it


def _may_be_buffer(value: Any) -> bool:
    """Tensors of any kind (a sparse one is no `Tensor`), and what answers torch's functions."""
    return isinstance(value, Tensor | OtherKind) or hasattr(type(value), "__torch_function__")


class _Forward(Protocol[P, R]):
    """What has a `forward`: a call of it takes and gives the same."""

    def forward(self, *args: P.args, **kwargs: P.kwargs) -> R: ...


class Module:
    """The base of every layer and model: subclass it, assign what it is made of, write `forward`.

    Parameters, buffers and modules that are assigned as attributes are found by `parameters()`,
    `state_dict()`, `to()` … under the names of those attributes.

    >>> import undertow as ut
    >>> class Line(ut.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.slope = ut.nn.Parameter(ut.tensor(2.0))
    ...
    ...     def forward(self, x):
    ...         return self.slope * x
    >>> line = Line()
    >>> line(ut.tensor(3.0))
    tensor(6., grad_fn=<MulBackward0>)
    >>> dict(line.state_dict())
    {'slope': tensor(2.)}
    """

    dump_patches = False
    _version = 1  # of the layout of its own state, which is written into state_dict()._metadata
    training: bool
    call_super_init = False
    _overwrites: ClassVar[bool] = False  # whether a conversion makes new parameters
    _swaps: ClassVar[bool] = False  # what comes before that; see `ut.__future__`
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, Module | None]
    _hooks: Hooks | None  # None until somebody registers one: a call asks for nothing else
    _forward_hooks = HooksOf("forward")
    _forward_pre_hooks = HooksOf("forward_pre")
    _backward_hooks = HooksOf("backward")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if self.call_super_init:
            super().__init__(*args, **kwargs)
        elif args or kwargs:
            raise DTypeError(
                f"[{type(self).__name__}] Module.__init__() takes no arguments, got "
                f"{len(args)} and {sorted(kwargs)}; a subclass takes them, and calls "
                "super().__init__() without any"
            )
        fields = self.__dict__
        fields["training"] = True
        fields["_parameters"] = {}
        fields["_buffers"] = {}
        fields["_non_persistent_buffers_set"] = set()
        fields["_modules"] = {}
        fields["_hooks"] = None

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes: every subclass has its own."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __call__(self: _Forward[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run `forward` between the hooks; an error tells which module of the tree it was in."""
        if TYPE_CHECKING:
            assert isinstance(self, Module)
        try:
            if self._hooks is None and not GLOBAL_CALLS:
                return self.forward(*args, **kwargs)
            return called(self, args, kwargs)
        except Exception as error:
            with_path(error, self)
            raise

    # What it is made of -----------------------------------------------------------------------
    def __setattr__(self, name: str, value: Any) -> None:
        changed()
        fields = self.__dict__
        if isinstance(value, Parameter):
            self._ready("parameters")
            _forget(self, name, "_buffers", "_modules")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._ready("modules")
            _forget(self, name, "_parameters", "_buffers")
            self._modules[name] = registered("module", self, name, value)
        elif isinstance(value, Buffer):
            self._ready("buffers")
            # As in torch, a class whose register_buffer does not know the flag is not told it.
            told = "persistent" in signature(self.register_buffer).parameters
            self.register_buffer(name, value, *[value.persistent] * told)
        else:
            for register in _REGISTERS:
                if name in fields.get(register, ()):
                    self._replace(register, name, value)
                    return
            object.__setattr__(self, name, value)

    def _replace(self, register: str, name: str, value: Any) -> None:
        """Assign to a name that is taken: None, or (for a buffer) another tensor."""
        if value is not None and not (register == "_buffers" and _may_be_buffer(value)):
            kind = {"_parameters": "parameter", "_buffers": "buffer", "_modules": "child module"}
            wanted = {
                "_parameters": "undertow.nn.Parameter",
                "_buffers": "undertow.Tensor",
                "_modules": "undertow.nn.Module",
            }
            raise DTypeError(
                f"cannot assign '{type(value).__name__}' as {kind[register]} '{name}' "
                f"({wanted[register]} or None expected)"
            )
        self.__dict__[register][name] = value

    def __getattr__(self, name: str) -> Any:
        fields = self.__dict__
        for register in _REGISTERS:
            found = fields.get(register)
            if found is not None and name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        changed()
        for register in _REGISTERS:
            if name in self.__dict__[register]:
                del self.__dict__[register][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def _ready(self, what: str) -> None:
        if "_modules" not in self.__dict__:
            raise AttributeError(
                f"cannot assign {what} before Module.__init__() call: begin "
                f"{type(self).__name__}.__init__ with super().__init__()"
            )

    def _new_name(self, op: str, name: Any, register: str) -> None:
        if not isinstance(name, str):
            raise DTypeError(f"[{op}] a name is a string, got {type(name).__name__}")
        if "." in name or name == "":
            raise KeyError(f'[{op}] a name has letters and no ".", got {name!r}')
        if hasattr(self, name) and name not in self.__dict__[register]:
            raise KeyError(f"[{op}] attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter, or None for one that could be there."""
        self._ready("parameter")
        self._new_name("register_parameter", name, "_parameters")
        if param is not None:
            if not isinstance(param, Parameter):
                raise DTypeError(
                    f"cannot assign '{type(param).__name__}' object to parameter '{name}' "
                    "(undertow.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ArgumentError(
                    f"[register_parameter] '{name}' was made by {param.grad_fn.name()}; a "
                    "parameter is a leaf: compute it in forward() instead"
                )
            param = registered("parameter", self, name, param)
        changed()
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that belongs to the state, and is not learned; None for a possible one."""
        self._ready("buffer")
        self._new_name("register_buffer", name, "_buffers")
        if tensor is not None:
            if not _may_be_buffer(tensor):
                raise DTypeError(
                    f"cannot assign '{type(tensor).__name__}' object to buffer '{name}' "
                    "(undertow.Tensor or None required)"
                )
            tensor = registered("buffer", self, name, tensor)
        changed()
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a module under a name, or None for one that could be there."""
        self._ready("module")
        if not isinstance(module, Module) and module is not None:
            raise DTypeError(f"[add_module] {type(module).__name__} is not a Module subclass")
        self._new_name("add_module", name, "_modules")
        changed()
        self._modules[name] = registered("module", self, name, module)

    register_module = add_module

    # What it is made of, found by name ----------------------------------------------------------
    def get_submodule(self, target: str) -> Module:
        """The module at a path such as "encoder.layers.2"."""
        found = self
        for name in target.split(".") if target else ():
            step = getattr(found, name, None)
            if step is None:
                raise AttributeError(f"{type(found).__name__} has no attribute `{name}`")
            if not isinstance(step, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
            found = step
        return found

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put a module at a path; with `strict` only where one is already."""
        if not target:
            raise ValueError("[set_submodule] cannot replace the module itself: the path is empty")
        if not isinstance(module, Module):
            raise ValueError(f"[set_submodule] {type(module).__name__} is not an nn.Module")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{type(parent).__name__} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _at(self, target: str, register: str, what: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        if name not in module.__dict__[register]:
            raise AttributeError(f"`{name}` is not {what}")
        return module.__dict__[register][name]

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path such as "encoder.layers.2.weight"."""
        return self._at(target, "_parameters", "an nn.Parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path."""
        return self._at(target, "_buffers", "a buffer")

    def get_extra_state(self) -> Any:
        """More state than tensors; a subclass that has some also has `set_extra_state`."""
        raise RuntimeError(
            f"[{type(self).__name__}] get_extra_state() is there for subclasses to write"
        )

    def set_extra_state(self, state: Any) -> None:
        """Take back what `get_extra_state` gave."""
        raise RuntimeError(
            f"[{type(self).__name__}] its state has an extra state, and it has no set_extra_state()"
        )

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Itself and every module below, with their paths."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, path, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Itself and every module below, each once unless told otherwise."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly below, each once, with their names."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The modules directly below, each once."""
        for _, module in self.named_children():
            yield module

    def _named_members(
        self, register: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else iter([(prefix, self)])
        )
        for path, module in modules:
            for name, value in module.__dict__[register].items():
                if value is not None and id(value) not in seen:
                    if remove_duplicate:
                        seen.add(id(value))
                    yield f"{path}.{name}" if path else name, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Every parameter with its path."""
        return self._named_members("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Every parameter, each once: what an optimiser is given."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Every buffer with its path."""
        return self._named_members("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Every buffer, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    # Changing all of it -------------------------------------------------------------------------
    def apply(self: T, fn: Callable[[Module], Any]) -> T:
        """Call `fn` with every module below and with this one, children first.

        >>> import undertow as ut
        >>> model = ut.nn.Sequential(ut.nn.Linear(2, 2), ut.nn.Linear(2, 1))
        >>> _ = model.apply(lambda m: print(type(m).__name__))
        Linear
        Linear
        Sequential
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self: T, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> T:
        """Replace the memory of every parameter, its gradient and every buffer by `fn` of it."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is not None:
                with no_grad():
                    moved = fn(parameter if is_lazy(parameter) else parameter.detach())
                    grad = parameter.grad
                    kept = parameter
                    if Module._overwrites and not Module._swaps and not is_lazy(parameter):
                        kept = self._parameters[name] = Parameter(moved, parameter.requires_grad)
                    elif moved is not parameter:
                        parameter._grad = None
                        parameter.data = moved
                    if grad is not None:
                        kept.grad = fn(grad.detach()).requires_grad_(grad.requires_grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self: T, *args: Any, **kwargs: Any) -> T:
        """Move or cast in place: `to(device)`, `to(dtype)` for floating values, `to(tensor)`.

        >>> import undertow as ut
        >>> ut.nn.Linear(2, 1).to(ut.float64).weight.dtype
        undertow.float64
        """
        kwargs.pop("non_blocking", None)
        kwargs.pop("memory_format", None)
        found: dict[str, Any] = {"device": kwargs.pop("device", None)}
        found["dtype"] = kwargs.pop("dtype", None)
        for i, value in enumerate((*args, kwargs.pop("tensor", None))):
            if isinstance(value, Tensor):
                found = {"device": value.device, "dtype": value.dtype}
            elif isinstance(value, bool):  # non_blocking: behind a dtype, a tensor or both
                if i not in (1, 2) or (i == 1 and not isinstance(args[0], (DType, Tensor))):
                    raise DTypeError(
                        f"[to] takes (device, dtype, non_blocking), got {value} as argument {i + 1}"
                    )
            elif value is not None:
                kind = "dtype" if isinstance(value, DType) else "device"
                if found[kind] is not None:
                    raise DTypeError(f"[to] takes one {kind}, got {found[kind]} and {value}")
                found[kind] = value
        if kwargs:
            raise DTypeError(f"[to] takes a device, a dtype or a tensor, got {sorted(kwargs)}")
        dtype, device = found["dtype"], found["device"]
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise DTypeError(
                f"[to] a module takes floating or complex dtypes, got {dtype}: its parameters "
                "need gradients"
            )

        def moved(t: Tensor) -> Tensor:
            casts = dtype is not None and (t.is_floating_point() or t.is_complex())
            how = {"device": device} if device is not None else {}
            return t.to(**how, **({"dtype": dtype} if casts else {}))

        return self._apply(moved)

    def type(self: T, dst_type: Any) -> T:
        """Cast all parameters and buffers."""
        return self._apply(lambda t: t.to(dst_type))

    def _floating(self: T, dtype: str) -> T:
        from ... import dtypes

        return self.to(getattr(dtypes, dtype))

    def float(self: T) -> T:
        """Cast floating parameters and buffers to float32."""
        return self._floating("float32")

    def double(self: T) -> T:
        """Cast floating parameters and buffers to float64."""
        return self._floating("float64")

    def half(self: T) -> T:
        """Cast floating parameters and buffers to float16."""
        return self._floating("float16")

    def bfloat16(self: T) -> T:
        """Cast floating parameters and buffers to bfloat16."""
        return self._floating("bfloat16")

    def cpu(self: T) -> T:
        """Move all parameters and buffers to the CPU."""
        return self.to("cpu")

    def cuda(self: T, device: Any = None) -> T:
        """Move all parameters and buffers to a CUDA device."""
        return self.to("cuda" if device is None else device)

    def to_empty(self: T, *, device: Any, recurse: bool = True) -> T:
        """Move to a device without copying the values."""
        from ...core.register import FUNCTIONS

        empty = FUNCTIONS["empty_like"]
        return self._apply(lambda t: empty(t, device=device), recurse=recurse)

    def share_memory(self: T) -> T:
        """Put all parameters and buffers where processes can share them."""
        return self._apply(lambda t: t.share_memory_())

    def train(self: T, mode: bool = True) -> T:
        """Switch to training (dropout drops, batch norm measures), or out of it."""
        if not isinstance(mode, bool):
            raise ValueError(f"[train] training mode is expected to be boolean, got {mode!r}")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: T) -> T:
        """Switch to evaluation: `train(False)`."""
        return self.train(False)

    def requires_grad_(self: T, requires_grad: bool = True) -> T:
        """Switch the gradients of all parameters on or off."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero."""
        for parameter in self.parameters():
            grad = parameter.grad
            if grad is not None:
                if set_to_none:
                    parameter.grad = None
                else:
                    if grad.grad_fn is not None:
                        grad.detach_()
                    else:
                        grad.requires_grad_(False)
                    grad.zero_()

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Accepted as in torch, without effect: `ut.compile(module)` gives a compiled one."""

    # State --------------------------------------------------------------------------------------
    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Every parameter and persistent buffer by its path; `keep_vars` for those themselves.

        >>> import undertow as ut
        >>> list(ut.nn.Linear(2, 1).state_dict())
        ['weight', 'bias']
        """
        for name, value in zip(("destination", "prefix", "keep_vars"), args, strict=False):
            kwargs.setdefault(name, value)
        return state_of(self, **kwargs)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy values into the parameters and buffers; `strict` is an error if names differ.

        With `assign` the tensors of `state_dict` take the place of those of the module.

        >>> import undertow as ut
        >>> ut.nn.Linear(2, 1).load_state_dict({"weight": ut.ones(1, 2)})
        Traceback (most recent call last):
        ...
        undertow.errors.ArgumentError: Error(s) in loading state_dict for Linear:
            Missing key(s) in state_dict: "bias".
        """
        return load_state(self, state_dict, strict, assign)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Write what this module itself has; a subclass may write more."""
        from .state import save_own

        save_own(self, destination, prefix, keep_vars)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Take back what this module itself has; a subclass may translate an older layout."""
        from .state import load_own

        load_own(
            self,
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )

    # Hooks --------------------------------------------------------------------------------------
    def _hooked(self) -> Hooks:
        if self._hooks is None:
            self._hooks = Hooks()
        return self._hooks

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before `forward`; what it returns replaces the arguments."""
        return self._hooked().add("forward_pre", hook, prepend, with_kwargs=with_kwargs)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after `forward`; what it returns is the output.

        >>> import undertow as ut
        >>> layer = ut.nn.Linear(2, 1)
        >>> handle = layer.register_forward_hook(lambda m, args, out: print(out.shape))
        >>> _ = layer(ut.ones(3, 2))
        (3, 1)
        """
        options = {"with_kwargs": with_kwargs, "always_call": always_call}
        return self._hooked().add("forward", hook, prepend, **options)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_output)` before the module's backward."""
        return self._hooked().add("backward_pre", hook, prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` once the inputs' gradients are there.

        >>> import undertow as ut
        >>> layer = ut.nn.Linear(2, 1)
        >>> show = lambda m, grad_input, grad_output: print(grad_output)
        >>> handle = layer.register_full_backward_hook(show)
        >>> layer(ut.ones(1, 2)).sum().backward()
        (tensor([[1.]]),)
        """
        if self._hooks is not None and self._hooks.backward_old:
            raise RuntimeError("cannot use both regular and full backward hooks on a Module")
        return self._hooked().add("backward", hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook` when the last operation of `forward` has its gradients.

        Deprecated in torch in favour of `register_full_backward_hook`.
        """
        if self._hooks is not None and self._hooks.backward:
            raise RuntimeError("cannot use both regular and full backward hooks on a Module")
        return self._hooked().add("backward_old", hook, False)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before `state_dict` looks at the module."""
        return self._hooked().add("state_dict_pre", hook, False)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` when its part is written."""
        return self._hooked().add("state_dict", hook, False)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        return self._hooked().add("state_dict", hook, False, may_return=True)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)`.

        It comes before the module takes its part, and may change the `state_dict`.
        """
        return self._hooked().add("load_pre", hook, False, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        return self._hooked().add("load_pre", hook, False, with_module=with_module)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` when everything is loaded; it may change them."""
        return self._hooked().add("load", hook, False)

    # Python -------------------------------------------------------------------------------------
    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What stands between the brackets of its own line in `repr`."""
        return ""

    def __repr__(self) -> str:
        own = self.extra_repr().split("\n") if self.extra_repr() else []
        below = [
            f"({name}): " + repr(module).replace("\n", "\n  ")
            for name, module in self._modules.items()
        ]
        if len(own) == 1 and not below:
            return f"{self._get_name()}({own[0]})"
        lines = [*own, *below]
        inside = "\n  " + "\n  ".join(lines) + "\n" if lines else ""
        return f"{self._get_name()}({inside})"

    def _repr_html_(self) -> str:
        number = sum([p.numel() for p in self.parameters() if not is_lazy(p)])
        return as_html(f"{self._get_name()}, {number:,} parameters", repr(self))

    def __dir__(self) -> list[str]:
        named = [name for register in _REGISTERS for name in self.__dict__[register]]
        found = {*dir(type(self)), *self.__dict__, *named}
        return sorted(name for name in found if not name[:1].isdigit())

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "_forward_hooks" in state:  # a module of torch's, from a file
            state = as_ours(state)
        self.__dict__.update(state)
        self.__dict__.setdefault("_hooks", None)
        self.__dict__.setdefault("_non_persistent_buffers_set", set())

    def _replicate_for_data_parallel(self) -> Module:
        raise NotImplementedError("[DataParallel] there is one CPU: a module is not replicated")


def _forget(module: Module, name: str, *registers: str) -> None:
    """A name that becomes something else is no longer what it was."""
    module.__dict__.pop(name, None)
    module._non_persistent_buffers_set.discard(name)
    for register in registers:
        module.__dict__[register].pop(name, None)


__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]
