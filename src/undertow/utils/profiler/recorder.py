"""What a profiler watches while it is on, and how: nothing here runs while it is off.

Note [watching]
No hot path asks whether a profiler is on. Switching it on puts other things in the place of:
  - the code of public functions (`watch_calls`, Note [overriding] in core/overriding);
  - the steps of a backward pass, which `advance` finds among its module's globals;
  - the class of each running backend, by a subclass whose forms are timed;
  - `run` of every launch (`debug.watch_launches`), and `debug.kernel`, which hears of every kernel;
  - `Module.__call__` and the steps of optimisers.
Switching it off puts back what was there. Events are tuples in one list, appended as they end, of
all threads; what they mean is worked out later (`events`).
"""

from __future__ import annotations

import gc
import itertools
import math
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from time import perf_counter_ns as clock
from typing import Any, NamedTuple

from ...autograd import engine
from ...backends import debug, memory, registry
from ...backends.base import Backend
from ...core.node import AccumulateGrad
from ...core.op import OPS
from ...core.overriding import watch_calls
from ...core.tensor import Tensor
from ...kernel.expr import operations
from ...nn import Module
from ...nn.parameter import UninitializedBuffer, UninitializedParameter
from ...optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

_HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_ident = threading.get_ident
# What is no computation: views, questions, and what others are made of.
_NO_FORMS = frozenset(
    """
    begin end run prepare direct contiguous writable memory owned address require table as_strided
    storage_offset storage_size reshape permute transposed expand slice part bits all_plain
    """.split()  # noqa: SIM905
)


_NO_MEMORY = (UninitializedBuffer, UninitializedParameter)  # nor shapes, yet


class Wanted(NamedTuple):
    """What is recorded besides times."""

    shapes: bool = False
    memory: bool = False
    stack: bool = False
    flops: bool = False
    modules: bool = False


class Raw(NamedTuple):
    """One event, as it was recorded; times in nanoseconds."""

    kind: str  # op backward form launch kernel module optimizer mark step
    name: str
    begin: int
    end: int
    thread: int
    shapes: Any = None
    sequence: int = -1  # links a call to the backward of the node that it made
    flops: int = 0
    bytes: int = 0
    stack: tuple[str, ...] = ()


class Change(NamedTuple):
    """Memory that was taken, or given back (then `bytes` is negative)."""

    time: int
    bytes: int
    thread: int
    owner: str  # what took it


class Recorder:
    """What is recorded from `start` to `stop`."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.events: list[tuple[Any, ...]] = []  # each the beginning of a Raw, which costs more
        self.changes: list[Change] = []
        self.begin = self.end = 0
        self.busy: dict[str, tuple[float, float]] = {}  # thread: seconds on a processor, off it
        self.threads: dict[int, str] = {}
        self._numbers = itertools.count()
        self._undo = ExitStack()
        self._live: dict[int, Any] = {}
        self._inside: dict[int, list[str]] = {}  # by thread, the calls that are running
        self._clocks: dict[int, tuple[str, int, int]] = {}

    # On and off -----------------------------------------------------------------------------------
    def start(self) -> None:
        """Watch from now on."""
        if self.wanted.memory:
            for thing in gc.get_objects():
                if issubclass(type(thing), Tensor) and not issubclass(type(thing), _NO_MEMORY):
                    self._hold(getattr(thing, "_array", None), "before")
        with ExitStack() as undo:
            undo.enter_context(watch_calls(self._call))
            undo.enter_context(self._steps())
            undo.enter_context(self._forms())
            undo.enter_context(_replaced(debug, "kernel", self._kernel(debug.kernel)))
            undo.callback(debug.watch_launches(self._launch))
            undo.enter_context(self._optimisers())
            if self.wanted.modules:
                undo.enter_context(_replaced(Module, "__call__", self._module(Module.__call__)))
            self._undo = undo.pop_all()
        self.clear()

    def clear(self) -> None:
        """Forget what was recorded until now."""
        self.events.clear()
        del self.changes[:]
        if self.wanted.memory:
            held = sum([size for _, size in list(self._live.values())])
            self.changes.append(Change(clock(), held, _ident(), "before"))
        self._clocks = _thread_clocks()
        self.begin = clock()

    def stop(self) -> None:
        """Watch no more."""
        self.end = clock()
        self._undo.close()
        self._live = {}
        self.threads = {t.ident: t.name for t in threading.enumerate() if t.ident is not None}
        for number, (name, on, off) in _thread_clocks().items():
            _, on_before, off_before = self._clocks.get(number, (name, 0, 0))
            used = (on - on_before) / 1e9, (off - off_before) / 1e9
            if used[0]:
                self.busy[f"{name} ({number})"] = used

    # Calls ------------------------------------------------------------------------------------
    def _call(self, name: str, run: Any, args: Any, kwargs: Any) -> Any:
        wanted = self.wanted
        if wanted.memory or wanted.stack or wanted.shapes or wanted.flops:
            return self._detailed(name, run, args, kwargs)
        out = None
        begin = clock()
        try:
            out = run(*args, **kwargs)
            return out
        finally:
            end = clock()
            self.events.append(("op", name, begin, end, _ident(), None, self._sequence(out)))

    def _detailed(self, name: str, run: Any, args: Any, kwargs: Any) -> Any:
        wanted = self.wanted
        shapes = [_shape(a) for a in (*args, *kwargs.values())] if wanted.shapes else None
        stack = _stack() if wanted.stack else ()
        inside = self._inside.setdefault(_ident(), [])
        inside.append(name)
        out = None
        begin = clock()
        try:
            out = run(*args, **kwargs)
            return out
        finally:
            if wanted.memory:
                for t in out if isinstance(out, (tuple, list)) else (out,):
                    self._hold(getattr(t, "_array", None), name)
            end = clock()
            work = _of_call(name, out) if wanted.flops else 0
            inside.pop()
            self.events.append(
                ("op", name, begin, end, _ident(), shapes, self._sequence(out), work, 0, stack)
            )

    def _sequence(self, out: Any) -> int:
        """The number of the call that made a result, which its node keeps."""
        if out.__class__ is tuple and out:
            out = out[0]
        node = getattr(out, "_node", None)
        if node is None or node.__class__ is AccumulateGrad:
            return -1
        try:
            return int(node.sequence)
        except AttributeError:
            number = node.sequence = next(self._numbers)
            return number

    # The backward pass --------------------------------------------------------------------------
    @contextmanager
    def _steps(self) -> Iterator[None]:
        events, names, inside = self.events, {}, self._inside  # type: ignore[var-annotated]
        memory_wanted = self.wanted.memory

        def timed(step: Callable[..., Any], place: int) -> Callable[..., Any]:
            def run(*given: Any) -> Any:
                node = given[place]
                plan = getattr(node, "plan", None)
                name = names.get(plan) if plan is not None else None
                if name is None:
                    name = node.name()
                    if plan is not None:
                        names[plan] = name
                number = getattr(node, "sequence", -1)
                del node
                if memory_wanted:
                    inside.setdefault(_ident(), []).append(name)
                begin = clock()
                try:
                    return step(*given)
                finally:
                    end = clock()
                    if memory_wanted:
                        inside[_ident()].pop()
                    events.append(("backward", name, begin, end, _ident(), None, number))

            return run

        with ExitStack() as undo:
            for name, place in (("_fused_step", 1), ("_rule_step", 1), ("_full_step", 2)):
                undo.enter_context(_replaced(engine, name, timed(getattr(engine, name), place)))
            undo.enter_context(_replaced(engine, "accumulate", timed(engine.accumulate, 0)))
            yield

    # Forms and launches -------------------------------------------------------------------------
    @contextmanager
    def _forms(self) -> Iterator[None]:
        before = [(backend, type(backend)) for backend in set(registry.running().values())]
        for backend, kind in before:
            forms = {
                name: self._form(name, getattr(kind, name))
                for name, found in vars(Backend).items()
                if callable(found) and name[0] != "_" and name not in _NO_FORMS
            }
            backend.__class__ = type(kind.__name__, (kind,), forms)
        try:
            yield
        finally:
            for backend, kind in before:
                backend.__class__ = kind

    def _form(self, name: str, form: Any) -> Any:
        events, wanted = self.events, self.wanted
        count = _FLOPS.get(name) if wanted.flops else None

        def timed(k: Any, *args: Any, **kwargs: Any) -> Any:
            begin = clock()
            out = None
            try:
                out = form(k, *args, **kwargs)
                return out
            finally:
                end = clock()
                if wanted.memory:
                    self._hold(out, name)
                done = out is not None or name == "conv"
                work = count(out, *args, **kwargs) if count is not None and done else 0
                events.append(("form", name, begin, end, _ident(), None, -1, work))

        return timed

    def _launch(
        self,
        name: str,
        arrays: Sequence[Any],
        numbers: Sequence[Any],
        work: int,
        go: Callable[[], None],
    ) -> None:
        size = sum([a.nbytes for a in arrays])
        shapes = [tuple(a.shape) for a in arrays] if self.wanted.shapes else None
        if self.wanted.memory:
            for a in arrays:
                self._hold(a, name)
        begin = clock()
        go()
        end = clock()
        self.events.append(("launch", name, begin, end, _ident(), shapes, -1, work, size))

    def _kernel(self, tell: Callable[..., None]) -> Callable[..., None]:
        def kernel(name: str, origin: str, seconds: float, size: int, why: str) -> None:
            end = clock()
            begin = end - int(seconds * 1e9)
            self.events.append(
                ("kernel", f"{origin}: {name}", begin, end, _ident(), None, -1, 0, size)
            )
            tell(name, origin, seconds, size, why)

        return kernel

    # Modules and optimisers -----------------------------------------------------------------------
    def _module(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(module: Any, /, *args: Any, **kwargs: Any) -> Any:
            begin = clock()
            try:
                return call(module, *args, **kwargs)
            finally:
                name = f"nn.Module: {type(module).__name__}"
                self.events.append(("module", name, begin, clock(), _ident()))

        return timed

    @contextmanager
    def _optimisers(self) -> Iterator[None]:
        begun: dict[tuple[int, int], int] = {}

        def before(optimizer: Any, args: Any, kwargs: Any) -> None:
            begun[_ident(), id(optimizer)] = clock()

        def after(optimizer: Any, args: Any, kwargs: Any) -> None:
            begin = begun.pop((_ident(), id(optimizer)), None)
            if begin is not None:
                kind = type(optimizer).__name__
                name = f"Optimizer.step#{kind}.step"
                self.events.append(("optimizer", name, begin, clock(), _ident()))

        with register_optimizer_step_pre_hook(before), register_optimizer_step_post_hook(after):
            yield

    # Memory -------------------------------------------------------------------------------------
    def _hold(self, array: Any, owner: str) -> None:
        """Count the memory of an array, once, until it is freed."""
        key = id(array)
        if array is None or key in self._live:
            return
        if array.__class__ is tuple or array.__class__ is list:
            for a in array:
                self._hold(a, owner)
            return
        inside = self._inside.get(_ident())
        owner = inside[-1] if inside else owner
        try:
            if not memory.owns(array):
                return
            size = int(array.size) * int(array.dtype.itemsize)
            held = weakref.ref(array, lambda _: self._free(key, size, owner))
        except (AttributeError, TypeError):  # no array, or of a device that keeps its own books
            return
        self._live[key] = held, size
        self.changes.append(Change(clock(), size, _ident(), owner))

    def peak(self) -> dict[str, int]:
        """Bytes that were held when most were, by what had taken them."""
        held, most, at = 0, -1, 0
        for number, change in enumerate(self.changes):
            held += change.bytes
            if held > most:
                most, at = held, number
        owners: dict[str, int] = {}
        for change in self.changes[: at + 1]:
            owners[change.owner] = owners.get(change.owner, 0) + change.bytes
        listed = sorted(owners.items(), key=lambda item: -item[1])
        return {owner: size for owner, size in listed if size}

    def _free(self, key: int, size: int, owner: str) -> None:
        if self._live.pop(key, None) is not None:
            self.changes.append(Change(clock(), -size, _ident(), owner))


# Small parts --------------------------------------------------------------------------------------
@contextmanager
def _replaced(where: Any, name: str, value: Any) -> Iterator[None]:
    before = vars(where)[name]
    setattr(where, name, value)
    try:
        yield
    finally:
        setattr(where, name, before)


def _shape(value: Any) -> Any:
    if isinstance(value, Tensor):
        return tuple(value.shape)
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], Tensor):
        return [tuple(v.shape) for v in value if isinstance(v, Tensor)]
    return ()


def _stack() -> tuple[str, ...]:
    """The caller's frames, innermost first, without the library's own."""
    frame: Any = sys._getframe(2)
    found = []
    while frame is not None:
        code = frame.f_code
        generated = code.co_filename == "<string>" and frame.f_globals.get("__name__") != "__main__"
        if not generated and not code.co_filename.startswith(_HOME):
            found.append(f"{code.co_filename}({frame.f_lineno}): {code.co_name}")
        frame = frame.f_back
    return tuple(found)


def _thread_clocks() -> dict[int, tuple[str, int, int]]:
    """By thread: name, and nanoseconds on a processor and waiting for one, where Linux tells."""
    names = {t.native_id: t.name for t in threading.enumerate()}
    found = {}
    try:
        for entry in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{entry}/schedstat") as file:
                on, off, _ = map(int, file.read().split())
            found[int(entry)] = names.get(int(entry), "native"), on, off
    except (OSError, ValueError):  # another system, or a thread that has just ended
        pass
    return found


# Operations of forms, by result and operands ------------------------------------------------------
def _of_product(out: Any, a: Any, b: Any, *others: Any, **named: Any) -> int:
    return 2 * math.prod(out.shape) * a.shape[-1]


def _of_conv(out: Any, target: Any, x: Any, w: Any, *others: Any, **named: Any) -> int:
    return 2 * math.prod(target.shape) * math.prod(w.shape[2:])


def _of_convolution(
    out: Any, wanted: str, a: Any, b: Any, bias: Any, geometry: Any, *others: Any, **named: Any
) -> int:
    """Each output position and channel, times channels and taps of a window."""
    w, y = {"x": (b, a), "w": (out, b), "y": (b, out)}[wanted]
    return 2 * math.prod(y.shape) * math.prod(w.shape[1:])


def _of_call(name: str, out: Any) -> int:
    """Of an elementwise function, which small tensors get from no form and no launch."""
    op = OPS.get(name)
    if op is None or op.scalar is None or not isinstance(out, Tensor):
        return 0
    return out.numel() * operations(op.expr)


def _of_map(out: Any, expr: Any, *others: Any, **named: Any) -> int:
    return math.prod(out.shape) * operations(expr)


def _of_maps(out: Any, exprs: Any, *others: Any, **named: Any) -> int:
    return sum([_of_map(o, e) for o, e in zip(out, exprs, strict=False)])


def _of_reduction(out: Any, kind: str, x: Any, *others: Any, **named: Any) -> int:
    return math.prod(x.shape)


_FLOPS: dict[str, Callable[..., int]] = {
    "matmul": _of_product,
    "conv": _of_conv,
    "convolution": _of_convolution,
    "map": _of_map,
    "maps": _of_maps,
    "reduce": _of_reduction,
    "scan": _of_reduction,
}
