"""`compile`: a function or module that is recorded as it runs, and then runs as a program."""

from __future__ import annotations

import functools
import inspect
import os
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ..backends.batch import enclosing
from ..backends.cpu.calls import launch, native
from ..backends.dual import LEVELS
from ..core import modes
from ..core.modes import current, enter
from ..core.recording import RECORDERS
from ..core.tensor import Tensor
from ..devices import defaults
from ..dtypes import get_default_dtype
from ..errors import ArgumentError, DTypeError, UnsupportedError
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..utils._pytree import tree_flatten
from .boxes import boxes
from .program import BUSY, NOT_NOW, Program, disagreement
from .trace import Trace, record
from .watch import SCALARS, Seen

MODE = os.environ.get("UNDERTOW_COMPILE", "on")
PROGRAMS = 8  # of one function; then what is new runs eagerly
ATTEMPTS = 6  # recordings of one program
MISSES = 16  # guards that fail one after the other
FIRST_WITNESS = 8
_functions: weakref.WeakSet[Any] = weakref.WeakSet()
disabled = 0  # inside `compiler.disable` nothing is compiled


class CompileError(UnsupportedError):
    """What `fullgraph=True` does not allow: that something cannot be compiled."""


class _Entry:
    """What is known of calls with arguments of one kind."""

    def __init__(self) -> None:
        self.program: Program | None = None
        self.trace: Trace | None = None
        self.seen: Seen | None = None
        self.leaves: dict[int, Any] = {}
        self.attempts = 0
        self.misses = 0
        self.refused: str | None = None
        self.where = ""
        self.next_witness = FIRST_WITNESS
        self.calls = 0
        self.difference = ""
        self.held: list[Any] = []
        self.split = False
        self.by_grads = False  # whether it depends on which leaves have a gradient: see held_leaves
        self.held_leaves: list[Any] = []


class Compiled:
    """A function, called as ever; see docs/compile.md."""

    def __init__(self, function: Callable[..., Any], fullgraph: bool) -> None:
        self._function = function
        self._fullgraph = fullgraph
        self._entries: dict[Any, _Entry] = {}
        self._regions: dict[Any, Compiled] = {}  # by what autocast does there
        self._told = False
        self._many = False
        self._around = 0
        functools.update_wrapper(self, function)
        _functions.add(self)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        """As a method."""
        return self if owner is None else functools.partial(self, owner)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        state = current()
        around = disabled or MODE == "off" or RECORDERS or LEVELS or enclosing.get() is not None
        if around or (state is not modes._default and state is not modes._default_no_grad):
            if not around and state.autocast is not None:
                plain = state.but(autocast=None)
                if plain is modes._default or plain is modes._default_no_grad:
                    enter(plain)
                    try:
                        return self._under(state.autocast)(*args, **kwargs)
                    finally:
                        _leave(state)
            self._around += 1
            return self._function(*args, **kwargs)
        tensors: Sequence[Any]
        if kwargs or not all(a.__class__ is Tensor for a in args):
            tensors, key = self._key(args, kwargs)
            if key is None:
                return self._function(*args, **kwargs)
        else:
            tensors = args
            key = None
        arrays = [t._array for t in tensors]
        wants = tuple([t._node is not None for t in tensors])
        settings = get_default_dtype(), defaults()
        whole: tuple[Any, ...] = (state, key, launch.layout(*arrays), wants, *settings)
        entry = self._entries.get(whole)
        parent = None
        if entry is not None and entry.by_grads:
            parent, whole = entry, (*whole, tuple([t._grad is None for t in entry.held_leaves]))
            entry = self._entries.get(whole)
        if entry is None:
            entry = self._new(whole, args, kwargs, tensors)
            if entry is None:
                return self._function(*args, **kwargs)
            if parent is not None:
                entry.leaves, entry.seen = {id(t): t for t in parent.held_leaves}, parent.seen
                entry.split = parent.split
                # Gradients stay the same tensors only when a program makes them.
                entry.attempts = -2 * ATTEMPTS
        if entry.refused is not None:
            if self._fullgraph:
                self._raise(entry)
            return self._function(*args, **kwargs)
        entry.calls += 1
        program = entry.program
        if program is not None and entry.calls != entry.next_witness:
            if MODE == "check":
                from .checking import checked

                found = checked(self, program, args, kwargs, tensors)
            else:
                found = program.call(tensors, (self._function, args, kwargs))
            if found is BUSY:
                return self._function(*args, **kwargs)
            if found is not NOT_NOW:
                entry.misses = 0
                return found
            entry.misses += 1
            if entry.misses > MISSES:
                why = program.why_not(tensors) or "the data"
                entry.program = None
                return self._refuse(
                    entry, f"something is another one in every call: {why}", "", args, kwargs
                )
        elif program is not None:
            entry.next_witness *= 2
            return self._record(entry, args, kwargs, tensors, program)
        return self._record(entry, args, kwargs, tensors)

    def _under(self, autocast: Any) -> Compiled:
        """The same function with this autocast as a part of it."""
        found = self._regions.get(autocast.settings)
        if found is None:
            inner = functools.partial(_autocasting, autocast.fresh(), self._function)
            found = self._regions[autocast.settings] = Compiled(inner, self._fullgraph)
            functools.update_wrapper(found, self._function)
        return found

    # Recording ------------------------------------------------------------------------------
    def _key(self, args: Any, kwargs: Any) -> tuple[list[Any], Any]:
        """The tensors among the arguments, and what else there is; None: not to be compiled."""
        leaves, spec = tree_flatten((args, kwargs))
        tensors: list[Any] = []
        others: list[Any] = []
        for leaf in leaves:
            if leaf.__class__ is Tensor or leaf.__class__ is Parameter:
                tensors.append(leaf)
                others.append(Tensor)
            elif leaf.__class__ in SCALARS:
                others.append((leaf.__class__, repr(leaf)))
            elif isinstance(leaf, Tensor):
                return [], None
            else:
                others.append((leaf.__class__, id(leaf)))
        return tensors, (repr(spec), tuple(others))

    def _new(self, key: Any, args: Any, kwargs: Any, tensors: Any) -> _Entry | None:
        if len(self._entries) >= PROGRAMS:
            if not self._many:
                self._many = True
                self._tell(
                    f"it was called with more than {PROGRAMS} kinds of arguments (other shapes, "
                    "dtypes, layouts or Python values); new ones run eagerly from now on"
                )
            return None
        entry = self._entries[key] = _Entry()
        entry.held = [leaf for leaf in tree_flatten((args, kwargs))[0] if _is_object(leaf)]
        for t in tensors:
            if t.device.type != "cpu":
                entry.refused = f"{t.device} is no device that programs run on"
        if not native.possible():
            entry.refused = f"there are no compiled functions here: {native.refusal()}"
        return entry

    def _record(
        self,
        entry: _Entry,
        args: Any,
        kwargs: Any,
        tensors: Sequence[Tensor],
        program: Program | None = None,
    ) -> Any:
        """An eager call that is recorded; if it is a witness for a program, that may go on."""
        leaves = list(entry.leaves.values())
        known = entry.seen
        found, trace, seen = record(
            self._function, args, kwargs, tensors, leaves, known, entry.split
        )
        if trace is None or seen is None:  # somebody else records
            return found
        entry.attempts += 1
        entry.seen = seen
        for t in trace.leaves:
            entry.leaves[id(t)] = t
        if trace.has_history and not entry.split:
            entry.split = True  # its backward is to be recorded, too
            return found
        if trace.refused is not None:
            self._refuse(entry, trace.refused, trace.where)
            return found
        complete = (
            known is not None
            and not trace.unknown_leaf
            and set(seen.codes) <= set(known.codes)
            and set(seen.modules) <= set(known.modules)
        )
        if not complete:
            entry.trace = None
            if trace.unknown_leaf and entry.attempts > 2:
                entry.difference = "a leaf that gets a gradient is another tensor in each call"
        elif entry.trace is None:
            entry.trace = trace
        elif trace.gradless != entry.trace.gradless:  # as where gradients are accumulated
            entry.by_grads, entry.held_leaves = True, [g.leaf for g in trace.grads]
            entry.trace = entry.program = None
        else:
            why = disagreement(entry.trace, trace)
            if why is None and program is not None:
                entry.attempts = 0
                return found
            if why is None:
                program = Program(entry.trace, trace, tensors)
                if program.refused is not None:
                    self._refuse(entry, program.refused, "")
                    return found
                entry.program = program
                entry.attempts = 0
            else:
                entry.program = None
                entry.difference = why
            entry.trace = trace
        if entry.attempts > ATTEMPTS:
            self._refuse(entry, entry.difference or "no two recordings agree", "")
        return found

    def _refuse(
        self, entry: _Entry, why: str, where: str, args: Any = None, kwargs: Any = None
    ) -> Any:
        entry.refused, entry.where = why, where
        entry.trace = entry.program = None
        entry.leaves.clear()
        at = f" ({where})" if where and where not in why else ""
        if self._fullgraph:
            self._raise(entry)
        if not self._told:
            self._told = True
            self._tell(f"{why}{at}; it runs eagerly. explain() tells more")
        return None if args is None else self._function(*args, **kwargs)

    def _raise(self, entry: _Entry) -> None:
        where, why = entry.where, entry.refused or ""
        at = f" ({where})" if where and where not in why else ""
        raise CompileError(f"[compile] {self._name()} cannot be compiled: {why}{at}")

    def _name(self) -> str:
        function = self.__dict__["__wrapped__"]
        return getattr(function, "__qualname__", type(function).__name__)

    def _tell(self, what: str) -> None:
        code = getattr(inspect.unwrap(self), "__code__", None)
        place = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
        warnings.warn(f"[compile] {self._name()}{place}: {what}", UserWarning, stacklevel=5)

    # For users ------------------------------------------------------------------------------
    def explain(self) -> str:
        """What became of the function, as text: its programs, or why there is none."""
        lines = [f"{self._name()}:"]
        if self._around:
            lines.append(
                f"  {self._around} calls ran eagerly, inside of something that is not compiled: "
                "a recording, a transform, hooks of saved tensors, anomaly detection"
            )
        elif not self._entries and not self._regions:
            lines.append("  not called yet")
        known = [(key, entry) for key, entry in self._entries.items() if not entry.by_grads]
        for i, ((state, _, _, wants, *_), entry) in enumerate(known):
            mode = "with gradients" if state.grad else "without gradients"
            lines.append(f"  {i + 1}. {len(wants)} tensors, {mode}, called {entry.calls} times")
            if entry.refused is not None:
                at = f" ({entry.where})" if entry.where else ""
                lines.append(f"    eager: {entry.refused}{at}")
            elif entry.program is None:
                why = f"; the last two differ: {entry.difference}" if entry.difference else ""
                lines.append(f"    not yet: {entry.calls} calls were recorded{why}")
            else:
                lines += [f"    {line}" for line in entry.program.described().splitlines()]
                lines.append(f"    {entry.program.calls} calls ran as this program")
        for region in self._regions.values():
            lines += ["  inside of autocast:", *region.explain().splitlines()[1:]]
        return "\n".join(lines)

    def boxes(self, called: dict[str, Any], most: int) -> Any:
        """The program that ran most for `ut.draw`, and how many there are; None: there is none."""
        compiled = [self, *self._regions.values()]
        entries = [entry for c in compiled for entry in c._entries.values()]
        programs = [entry.program for entry in entries if entry.program is not None]
        if not programs:
            return None
        often = max(programs, key=lambda program: program.calls)
        return *boxes(often.table.recording, called, most), len(programs)

    def __reduce__(self) -> Any:  # of copies and pickles: programs are made anew
        return Compiled, (self._function, self._fullgraph)

    def reset(self) -> None:
        """Forget all programs."""
        self._entries.clear()
        self._regions.clear()
        self._told = self._many = False
        self._around = 0


def _autocasting(autocast: Any, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function in a region of autocast of its own."""
    state = current()
    enter(state.but(autocast=autocast.fresh()))
    try:
        return function(*args, **kwargs)
    finally:
        _leave(state)


def _leave(state: Any) -> None:
    """Switch autocast back to that of a state; gradients stay as they were left."""
    after = current()
    enter(state if after.grad is state.grad else after.but(autocast=state.autocast))


def _is_object(leaf: Any) -> bool:
    return leaf.__class__ not in SCALARS and not isinstance(leaf, Tensor)


class OptimizedModule(Module):
    """A module whose calls are compiled; everything else is that of `_orig_mod`, as in torch."""

    def __init__(self, module: Module, fullgraph: bool) -> None:
        super().__init__()
        self._orig_mod = module
        self.__dict__["_compiled"] = Compiled(module.__call__, fullgraph)
        self.training = module.training

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__dict__["_compiled"](*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.__dict__["_compiled"](*args, **kwargs)

    def explain(self) -> str:
        """What became of its calls, as text."""
        found: str = self.__dict__["_compiled"].explain()
        return found

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self.__dict__["_modules"]["_orig_mod"]
        return getattr(self.__dict__["_modules"]["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_orig_mod", "training") or "_orig_mod" not in self.__dict__["_modules"]:
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __reduce__(self) -> Any:  # of copies and pickles: programs are made anew
        return OptimizedModule, (self._orig_mod, self.__dict__["_compiled"]._fullgraph)

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __iter__(self) -> Any:
        return iter(self._orig_mod)

    def __getitem__(self, item: Any) -> Any:
        inner: Any = self._orig_mod
        return inner[item]


def _of_the_module(name: str) -> Any:
    """A method of the module inside, since that is what is called."""

    @functools.wraps(getattr(Module, name))
    def method(self: OptimizedModule, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._orig_mod, name)(*args, **kwargs)

    return method


for _name in ("forward_hook", "forward_pre_hook", "full_backward_hook", "full_backward_pre_hook"):
    setattr(OptimizedModule, f"register_{_name}", _of_the_module(f"register_{_name}"))


_BACKENDS = ("inductor", "eager", "aot_eager", "cudagraphs", "undertow")
_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
    **more: Any,
) -> Any:
    """A function or module that is recorded as it runs, and from the fourth call on is a program.

    A program runs what the calls have launched, in one go, with no Python in between. Best compile
    a whole training step: forward, backward and `optimizer.step()`. Results are the same bit for
    bit as those of eager kernels; what cannot be compiled runs eagerly, and a warning tells why.
    `explain()` of the result tells what became of it. See docs/compile.md.

    Args:
        model: A function, a method or a module. Without it the result is a decorator.
        fullgraph: Raise an error where a warning would tell that something cannot be compiled.
        dynamic: Accepted; each layout of arguments has a program of its own, at most eight.
        backend: Accepted; "eager" compiles nothing.
        mode: Accepted, one of torch's.
        options: Accepted.
        disable: Compile nothing.

    >>> import undertow as ut
    >>> @ut.compile
    ... def double(x):
    ...     return x * 2
    >>> [double(ut.ones(2)).tolist() for _ in range(5)][-1]
    [2.0, 2.0]
    """
    if mode is not None and mode not in _MODES:
        raise ArgumentError(f"[compile] mode is one of {', '.join(_MODES)}, got {mode!r}")
    if model is None:
        return lambda model: compile(
            model, fullgraph=fullgraph, backend=backend, mode=mode, disable=disable
        )
    if not callable(model):
        raise DTypeError(f"[compile] expects a function or a module, got {type(model).__name__}")
    if disable or backend == "eager" or MODE == "off" or isinstance(model, type):
        return model
    if isinstance(model, (Compiled, OptimizedModule)):
        return model
    if isinstance(model, Module):
        return OptimizedModule(model, fullgraph)
    if inspect.isgeneratorfunction(model) or inspect.iscoroutinefunction(model):
        return model
    return Compiled(model, fullgraph)


def reset() -> None:
    """Forget all programs."""
    for f in list(_functions):
        f.reset()
