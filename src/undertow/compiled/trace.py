"""Recording one call of a user's function: an ordinary eager call, and all that it did."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from threading import get_ident
from typing import Any, NamedTuple

import numpy as np

from .. import dtypes
from ..autograd.api import grad as gradients
from ..backends.batch import BatchArray
from ..backends.cpu import recorder as tapes
from ..backends.dual import primal_of, tangents
from ..backends.program.graph import Checked, Piece, Recording
from ..backends.registry import CPU, OF_CLASS
from ..core import fused
from ..core.dispatch import apply
from ..core.modes import current, enter
from ..core.node import AccumulateGrad
from ..core.recording import RECORDERS, epoch
from ..core.tensor import Tensor, wrap
from ..utils._pytree import tree_flatten
from .watch import SCALARS, Seen, Watch, line_of_user


class Output(NamedTuple):
    """A leaf of what the function returned."""

    kind: str  # made, argument, again, same, value
    value: Any  # a piece, the number of the argument or of the output, the tensor, the value
    tracked: bool = False  # whether it had a history, which is used up


class Grad(NamedTuple):
    """A leaf's gradient before and after the call."""

    leaf: Any
    before: Any
    read: bool  # whether that was used
    after: Any  # None, a piece, or "same"


class Split(NamedTuple):
    """The backward of what a function returned, as the second part of a recording."""

    cotangents: list[Piece]  # of the results with a history, in order
    targets: list[tuple[Any, int]]  # nodes, and which of their outputs, that get gradients
    grads: list[Piece | None]  # for each


class Trace:
    """A recording, and what it did on the host."""

    def __init__(self) -> None:
        self.recording: Recording = Recording()
        self.refused: str | None = None
        self.where = ""
        self.outputs: list[Output] = []
        self.spec: Any = None
        self.grads: list[Grad] = []
        self.versions: list[tuple[Any, int]] = []
        self.holders: list[tuple[Tensor, Any, Any]] = []  # tensors from outside, arrays, nodes
        self.written: list[tuple[int, int]] = []  # memory from outside that was changed
        self.since: dict[tuple[int, int], int] = {}  # by which step it may have been
        self.steps: list[Any] = []  # of optimisers
        self.watch: Any = None
        self.leaves: list[Any] = []
        self.unknown_leaf = False
        self.epoch = 0
        self.first_write = sys.maxsize
        self.split: Split | None = None
        self.has_history = False  # what it returns has one, and nothing else is in the way

    @property
    def gradless(self) -> list[tuple[int, bool]]:
        """Which leaves had no gradient before."""
        return [(id(g.leaf), g.before is None) for g in self.grads]

    def refuse(self, why: str) -> None:
        """Note what keeps this from being a program, if nothing else does."""
        if self.refused is None:
            self.refused = why


class Recorder:
    """Who is told of what happens while a call is recorded; see core/recording."""

    def __init__(self, tape: tapes.Tape) -> None:
        self.tape = tape
        self.thread = get_ident()
        self.hosting = False
        self.where = ""
        self.tensors: dict[int, tuple[Any, Any, Any, int]] = {}
        self.leaves: dict[int, Any] = {}
        self.steps: list[Any] = []
        tape.told_of_reads = self._read

    def _read(self) -> None:
        self.where = self.where or line_of_user(3)

    def refuse(self, why: str) -> None:
        if self.tape.refused is None:
            self.tape.refused = why
            self.where = line_of_user(2)

    def saw(self, t: Any) -> None:
        if not isinstance(t, Tensor):
            return
        known = self.tensors.get(id(t))
        if known is not None and known[0]() is t:
            return
        alias = t._alias
        if not isinstance(t._array, np.ndarray):  # of a transform: the tape knows what it is of
            if not all(isinstance(a, np.ndarray) for a in _plain(t._array)):
                self.refuse("it runs on a device other than the CPU")
            elif alias is not None and alias.base is not None:
                self.saw(alias.base)
            return
        number = self.tape.recording.known(t._array)
        if number is not None and self.tape.recording.stores[number].origin == "made":
            return
        version = 0 if alias is None else alias.version.value
        self.tensors[id(t)] = (weakref.ref(t), t._array, t._node, version)
        if alias is not None and alias.base is not None:
            self.saw(alias.base)

    def leaf(self, t: Any) -> None:
        self.leaves[id(t)] = weakref.ref(t)
        self.saw(t)
        if t._grad is not None:
            self.saw(t._grad)

    def around(self, op: Any, inputs: Sequence[Any], params: tuple[Any, ...]) -> Any:
        for t in inputs:
            self.saw(t)
        state = current()
        enter(state.but(around=None))
        try:
            return apply(op, inputs, params)
        finally:
            enter(state)

    def quietly(self, work: Callable[[], Any]) -> None:
        self.tape.quiet += 1
        try:
            work()
        finally:
            self.tape.quiet -= 1

    def host(self, act: Callable[[], Any]) -> None:
        self.hosting = True
        try:
            act()
        finally:
            self.hosting = False
        self.tape.tell(act)

    def asks(self, function: Callable[[], Any]) -> None:
        self.tape.asked = function

    def asks_of(self, t: Tensor, function: Callable[[Any], Any]) -> Any:
        self.tape.quiet += 1
        try:
            found = function(t.item())
        finally:
            self.tape.quiet -= 1
        self.tape.asked = (function, self.tape.recording.piece(t._array))
        return found

    def watch(self, guard: Any) -> None:
        """Note something that must hold for a program, and nothing may be left of."""
        if all(
            g.__class__ is not guard.__class__ or g.optimizer is not guard.optimizer
            for g in self.steps
        ):
            self.steps.append(guard)

    def step(self, asked: Any, rows: Any) -> None:
        self.steps.append(asked)
        self.tape.asked = asked
        for row in rows:
            for t in row:
                self.saw(t)
        for p in asked._params:
            self.leaf(p)


def _plain(array: Any) -> Iterator[Any]:
    """The arrays of a device that an array of transforms consists of."""
    for change in tangents(array):
        yield from _plain(change._array)
    array = primal_of(array)
    if isinstance(array, BatchArray):
        yield from _plain(array.whole)
    else:
        yield array


def record(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    tensors: Sequence[Tensor],
    leaves: Sequence[Any],
    known: Seen | None,
    split: bool = False,
) -> tuple[Any, Trace | None, Seen | None]:
    """Call a function; what it returned, what it did, and what ran.

    `leaves` are those whose gradients are known to be touched, `known` is what ran the last time;
    `split` has the backward of what it returns recorded, too, from a cotangent of ones.
    Without a trace somebody else is recording.
    """
    with suppress(ImportError):  # its package is imported here, else the function would do that
        _ = dtypes.bfloat16.numpy
    tape = tapes.begin(CPU)
    if tape is None:
        return function(*args, **kwargs), None, None
    trace = Trace()
    seen = Seen()
    before = {id(t): t._grad for t in leaves}
    recorder = Recorder(tape)
    state = current()
    profile = sys.getprofile()
    try:
        given = _contents(args, kwargs)
        if any(getattr(t, "__dict__", None) for t in tensors):
            tape.refuse("a tensor that is an argument has attributes of its own")
        watch = None if known is None else Watch(known, function)
        trace.epoch = epoch.value
        for j, t in enumerate(tensors):
            number = tape.recording.store(t._array, "argument")
            store = tape.recording.stores[number]
            if store.argument is None:
                store.argument = j
            recorder.saw(t)
        enter(
            state.but(recording=True, around=recorder.around, writing=recorder.saw, threads=False)
        )
        RECORDERS.append(recorder)
        fused.KIND = None
        if profile is None:
            sys.setprofile(seen.profile)
        result = function(*args, **kwargs)
        sys.setprofile(profile)
        if split:
            trace.split = _backward(tape, result, tensors)
    finally:
        sys.setprofile(profile)
        fused.KIND = next(iter(OF_CLASS))
        if recorder in RECORDERS:
            RECORDERS.remove(recorder)
        tapes.end(CPU)
        after = current()
        enter(state)
    if after.grad is not state.grad:  # set_grad_enabled(False) inside stays, as in torch
        enter(state.but(grad=after.grad))
        tape.refused = tape.refused or "gradients are switched on or off inside, and stay so"
    if _contents(args, kwargs) != given:
        tape.refused = tape.refused or "a list or dictionary that is an argument is changed inside"
    if any(result is a for a in _parts((args, kwargs))):
        tape.refused = tape.refused or "it returns a list or dictionary that is an argument"
    trace.recording = tape.recording
    trace.first_write = tape.first_write
    if profile is not None:
        tape.refused = tape.refused or "a profiler is running"
    _finish(trace, recorder, seen, watch, result, tensors, before)
    seen.forget()
    return result, trace, seen


def _parts(value: Any) -> Iterator[Any]:
    """The lists and dictionaries in arguments."""
    if isinstance(value, (list, tuple, dict)):
        if not isinstance(value, tuple):
            yield value
        for v in value.values() if isinstance(value, dict) else value:
            yield from _parts(v)


def _contents(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the arguments consist of, to be compared."""
    leaves, spec = tree_flatten((args, kwargs))
    return repr(spec), [id(leaf) for leaf in leaves], [id(p) for p in _parts((args, kwargs))]


def _backward(tape: tapes.Tape, result: Any, tensors: Sequence[Tensor]) -> Split | None:
    """Run the backward of a result once, recorded, as the second part of the tape."""
    rec = tape.recording
    outs = [t for t in tree_flatten(result)[0] if isinstance(t, Tensor) and t._node is not None]
    given = {id(t._node): t for t in tensors if t._node is not None}
    if len(given) < len({id(t) for t in tensors if t._node is not None}):
        tape.refuse("two arguments are results of one operation, and want gradients")
        return None
    targets = _sources([t._node for t in outs], set(given))
    if not outs or not targets:
        tape.refuse("what it returns has a history that leads to no leaf")
        return None
    if any(id(t._node) in given for t in outs):
        tape.refuse("it returns an argument that wants a gradient")
        return None
    draws = len(rec.draws)
    rec.mark = len(rec.steps)
    cotangents: list[Tensor] = []
    for t in outs:
        cotangent = wrap(np.ones(t._array.shape, t._array.dtype))
        number = rec.store(cotangent._array, "argument")
        rec.stores[number].argument = len(tensors) + len(cotangents)
        cotangents.append(cotangent)
    inputs: list[Any] = []
    for node in targets:
        inputs.append(node.leaf() if isinstance(node, AccumulateGrad) else given[id(node)])
    grads = gradients(outs, inputs, cotangents, retain_graph=True, allow_unused=True)
    pieces: list[Piece | None] = []
    met: set[int] = set()
    for g in grads:
        if g is None:
            pieces.append(None)
            continue
        array = g._array
        known = rec.known(array)
        made = known is not None and rec.stores[known].origin == "made"
        if not made or known in met or not CPU.contiguous(array):
            array = CPU.copy(array)
        piece = rec.piece(array, "made")
        met.add(piece.store)
        pieces.append(piece)
    if len(rec.draws) > draws:
        tape.refuse("random numbers are drawn in the backward")
    if any(isinstance(s, Checked) for s in rec.steps[rec.mark :]):
        tape.refuse("a value is looked at in the backward")
    indices = [0 if isinstance(n, AccumulateGrad) else given[id(n)]._index for n in targets]
    shapes = [rec.piece(c._array) for c in cotangents]
    return Split(shapes, list(zip(targets, indices, strict=True)), pieces)


def _sources(nodes: list[Any], given: set[int]) -> list[Any]:
    """The nodes of leaves and arguments that a backward from here would reach."""
    stack, met, found = list(nodes), set(), []
    while stack:
        n = stack.pop()
        if n is None or id(n) in met:
            continue
        met.add(id(n))
        if isinstance(n, AccumulateGrad) or id(n) in given:
            found.append(n)
        else:
            stack += list(n.parents)
    return found


def _saved_stores(rec: Recording, nodes: list[Any]) -> set[int]:
    """The stores that a graph holds."""
    stack, met, found = list(nodes), set(), set()
    while stack:
        n = stack.pop()
        if n is None or id(n) in met:
            continue
        met.add(id(n))
        for value in n.saved or ():
            for t in value if isinstance(value, (list, tuple)) else (value,):
                for array in _plain(t._array) if isinstance(t, Tensor) else ():
                    number = rec.known(array)
                    if number is not None:
                        found.add(number)
        stack += list(n.parents)
    return found


def _finish(
    trace: Trace,
    recorder: Recorder,
    seen: Seen,
    watch: Watch | None,
    result: Any,
    tensors: Sequence[Tensor],
    before: dict[int, Any],
) -> None:
    """Find out what a call did besides its steps, and what keeps it from being a program."""
    tape, rec = recorder.tape, recorder.tape.recording
    trace.refused, trace.where = tape.refused, recorder.where
    if tape.reads:
        trace.refuse(
            "elements of a tensor are read inside (item(), tolist(), numpy(), bool(), print); "
            "return the tensor and read it outside"
        )
    if rec.doubtful:
        trace.refuse("memory that is made inside is used by way of another object")
    if seen.refused:
        trace.refuse(seen.refused)
    if watch is not None:
        if watch.refused:
            trace.refuse(watch.refused)
        name = watch.changed()
        if name is not None:
            trace.refuse(f"{name} is changed inside; keep such values in tensors, or outside")
    trace.watch = watch
    trace.steps = recorder.steps
    for guard in trace.steps:
        left = getattr(guard, "left", None)
        if left is not None and left() is not None:
            trace.refuse(left())
    trace.leaves = [t for r in recorder.leaves.values() if (t := r()) is not None]
    from_outside = _outside(trace, recorder, {id(t) for t in tensors})
    leaves, trace.spec = tree_flatten(result)
    explained = _results(trace, leaves, tensors)
    if from_outside and trace.split is None and not trace.has_history:
        trace.refuse("an argument has a history that is differentiated inside; detach() it")
    explained |= _left(trace, before)
    for j, step in enumerate(rec.steps):
        if isinstance(step, Checked) and j > trace.first_write and not early(trace, step, j):
            trace.refuse("a value that is computed inside is looked at after something was changed")
    if trace.split is not None:
        if trace.grads:
            trace.refuse("gradients are left in leaves, and there is a backward outside, too")
        explained |= _saved_stores(rec, [t._node for t in leaves if isinstance(t, Tensor)])
    if trace.refused is None and not trace.unknown_leaf:
        kept = [s for i, s in enumerate(rec.stores) if s.origin == "made" and i not in explained]
        if any(s.alive for s in kept):
            gc.collect()
            if any(s.alive for s in kept):
                trace.refuse("a tensor that is made inside is kept by somebody, and is no result")


def _outside(trace: Trace, recorder: Recorder, given: set[int]) -> bool:
    """What became of tensors that were there before; whether one of them has a history."""
    rec = trace.recording
    from_outside = False
    for ref, array, node, version in list(recorder.tensors.values()):
        t = ref()
        number = rec.known(array)
        if t is None or number is None or rec.stores[number].origin == "made":
            continue
        if t._array is not array:
            trace.refuse("the memory of a tensor is replaced inside")
        if t._node is not node and not (node is None and isinstance(t._node, AccumulateGrad)):
            trace.refuse("a tensor from outside gets another history inside")
        if node is not None and not isinstance(node, AccumulateGrad):
            from_outside = True
            if id(t) not in given:
                trace.refuse("a tensor with a history from outside is used; detach() it")
        if isinstance(node, AccumulateGrad) and (node.hooks is not None or node.post_accumulate):
            trace.refuse("a leaf has hooks")
        trace.holders.append((t, array, node))
        alias = t._alias
        if alias is not None and alias.version.value != version:
            trace.versions.append((alias.version, alias.version.value - version))
            store = rec.stores[number]
            trace.written.append((store.address, store.address + store.nbytes))
    for number, at in recorder.tape.written.items():  # also by names that count no versions
        store = rec.stores[number]
        if store.origin != "made":
            span = store.address, store.address + store.nbytes
            trace.written.append(span)
            trace.since[span] = min(at, trace.since.get(span, at))
    # Versions are shared between tensors.
    trace.versions = list({id(v): (v, n) for v, n in trace.versions}.values())
    return from_outside


def _results(trace: Trace, leaves: Sequence[Any], tensors: Sequence[Tensor]) -> set[int]:
    """What the call returned; the stores of it that were made inside."""
    rec = trace.recording
    found: set[int] = set()
    by_id = {id(t): j for j, t in enumerate(tensors)}
    first: dict[int, int] = {}  # the place of each tensor among the outputs
    for i, leaf in enumerate(leaves):
        if first.setdefault(id(leaf), i) != i and isinstance(leaf, Tensor):
            trace.outputs.append(Output("again", first[id(leaf)]))
            continue
        if not isinstance(leaf, Tensor):
            trace.outputs.append(Output("value", leaf))
            if leaf.__class__ not in SCALARS:
                trace.refuse(f"it returns a {type(leaf).__name__}, which a program cannot make")
            continue
        number = rec.known(leaf._array) if leaf.__class__ is Tensor else None
        if id(leaf) in by_id:
            trace.outputs.append(Output("argument", by_id[id(leaf)]))
        elif number is not None and rec.stores[number].origin == "made":
            found.add(number)
            tracked = leaf._node is not None
            if isinstance(leaf._node, AccumulateGrad):
                trace.refuse("it returns a leaf that is made inside")
            if tracked and trace.split is None and _alive(leaf._node):
                trace.has_history = trace.has_history or trace.refused is None
                trace.refuse("what it returns has a history, whose backward would run outside")
            trace.outputs.append(Output("made", rec.piece(leaf._array), tracked))
        else:
            trace.outputs.append(Output("same", leaf))
            if trace.split is not None and leaf._node is not None:
                trace.refuse("it returns a view of a tensor from outside that wants a gradient")
    return found


def _left(trace: Trace, before: dict[int, Any]) -> set[int]:
    """The gradients that the call has left; the stores of them that were made inside."""
    rec = trace.recording
    found: set[int] = set()
    for t in trace.leaves:
        if id(t) not in before:
            trace.unknown_leaf = True
            continue
        old, new = before[id(t)], t._grad
        if new is not None and not isinstance(new, Tensor):
            trace.refuse("sparse gradients")
            continue
        read = old is not None and rec.known(old._array) is not None
        after: Any = None
        if new is not None:
            number = rec.known(new._array)
            if new is old:
                after = "same"
            elif number is not None and rec.stores[number].origin == "made" and new._node is None:
                after = rec.piece(new._array)
                found.add(number)
            else:
                trace.refuse("a gradient is set to a tensor from outside, or one with a history")
        trace.grads.append(Grad(t, old, read, after))
    return found


def _alive(node: Any) -> bool:
    """Whether a backward from here would reach a leaf."""
    stack, met = [node], set()
    while stack:
        n = stack.pop()
        if n is None or id(n) in met:
            continue
        met.add(id(n))
        if isinstance(n, AccumulateGrad):
            return True
        plan = getattr(n, "plan", None)
        if plan is not None and plan.tensors and n.saved is None:
            continue
        stack += list(n.parents)
    return False


def early(trace: Trace, step: Checked, at: int) -> bool:
    """Whether a question could be asked at the beginning: of what was there, and is as it was."""
    for value in step.args:
        if value.__class__ is Piece:
            store = trace.recording.stores[value.store]
            low, high = store.address, store.address + store.nbytes
            if store.origin not in ("argument", "outer", "table"):
                return False
            for begin, end in trace.written:
                if begin < high and low < end and trace.since.get((begin, end), 0) <= at:
                    return False
    return True
