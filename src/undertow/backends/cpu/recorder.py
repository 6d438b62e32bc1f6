"""The CPU while a call is recorded: every form runs as ever, by kernels, and is written down.

Note [taking the CPU's place]
There is one object that is the CPU's backend, and everybody who computes has it. So recording
changes its class, and nothing else: no array, no tensor and no op knows of it. Forms that other
threads ask for meanwhile are passed on. A form that is asked for by another form is a part of that
one.

A form that consists of launches alone, and of nothing that NumPy does besides, is written down as
these launches (`_NATIVE`); every other one as a call. Small arrays, which eager calls give to
NumPy, go to kernels here: a launch in a program costs next to nothing. So the bits of a program are
those of UNDERTOW_KERNELS=always.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...kernel.expr import arg, call, trace
from ...kernel.windows import Geometry
from ..base import Backend
from ..memory_types import scalar_type, type_of
from ..program.graph import Called, Checked, Drawn, Launched, Mapped, Piece, Recording, Told
from . import backend as _cpu
from .backend import CpuBackend
from .calls import launch
from .calls.layouts import aligned
from .convolution.conv import run_convolution
from .forms import (
    attention,
    copies,
    indexing,
    maps,
    random,
    recurrent,
    reductions,
    rows,
    scans,
    scatter,
    updates,
    windows,
)
from .products.added_products import run_add_product
from .products.gemm import gemm

_ndarray = np.ndarray
_EXACT = (np.dtype(np.float32), np.dtype(np.float64))
_SUMS = (trace(lambda a, b: a + b, 2),)
_lock = threading.Lock()


class Tape:
    """What is recorded on one thread."""

    def __init__(self) -> None:
        self.recording = Recording()
        self.thread = threading.get_ident()
        self.depth = 0  # of forms inside forms
        self.reads: list[Any] = []  # arrays whose elements somebody has looked at
        self.told_of_reads: Callable[[], Any] = int  # called with each of them
        self.refused: str | None = None
        self.asked: Any = None  # what gives the numbers of the next update
        self.mend: Any = None  # what tells whether the form that has just run is right
        self.quiet = 0  # reading is accounted for
        self.first_write = sys.maxsize  # the first step that changes what was there before
        self.written: dict[int, int] = {}  # stores from outside that are changed, and when first
        self.drawn: list[tuple[int, int, int]] = []  # seed, first offset, one behind the last

    # Steps ----------------------------------------------------------------------------------
    def form(self, k: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A form, run and written down."""
        rec = self.recording
        if name in ("require", "within", "to_host"):
            return self._check(k, name, args, kwargs)
        given = rec.described(args)
        for target in _targets(name, args, kwargs):
            number = rec.piece(target).store
            if rec.stores[number].origin != "made":
                self.written.setdefault(number, len(rec.steps))
                self.first_write = min(self.first_write, len(rec.steps))
        named = tuple([(n, rec.described(v)) for n, v in kwargs.items()])
        native = _NATIVE.get(name)
        if native is not None:
            asked = self.asked
            found, launched = launch.launches(lambda: native(k, *args, **kwargs))
            if found is not _NOT and None not in launched:
                self._launched(name, found, launched, asked, args, kwargs)
                if self.mend is not None:
                    mend, self.mend = self.mend, None
                    told = rec.described(mend)
                    rec.steps.append(Called("mend_convolution", told, (), (), (), None))
                    k.mend_convolution(*mend)
                return found
            if found is _NOT and launched:  # it has begun, and another way was taken
                self.refuse(f"{name} takes a way that cannot be written down")
        else:
            found = _NOT
        if found is _NOT:
            found = getattr(CpuBackend, name)(k, *args, **kwargs)
        if name == "nonzero":
            self.refuse("the size of a result depends on data (nonzero, masks as indices, unique)")
        results, places = [], []
        for place, array in _arrays(found):
            if rec.known(array) is None:
                results.append(rec.piece(array, "made"))
                places.append(place)
        drawn = None
        if name in ("philox", "random_map"):
            seed, offset = (args[0], args[1]) if name == "philox" else args[-2:]
            drawn = self._which_draw(seed, offset)
            if kwargs:
                self.refuse("random numbers that are asked for by name")
        elif name == "update" and self.asked is not None:
            self.refuse("an optimiser's step over parameters that do not lie dense in memory")
        rec.steps.append(Called(name, given, named, tuple(results), tuple(places), drawn))
        return found

    def _launched(
        self,
        name: str,
        found: Any,
        launched: list[Any],
        asked: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        rec = self.recording
        for _, array in _arrays(found):
            rec.piece(array, "made")
        changed = [a for _, a in _arrays(found)] + [*_targets(name, args, kwargs)]
        written = frozenset([rec.piece(a).store for a in changed])
        for made, pool, given in launched:
            arrays, numbers = given[: made.buffers], given[made.buffers :]
            table = None
            ask = None
            if name == "update":
                row = [tuple([rec.piece(a) for a in r]) for r in args[1]]
                table = (tuple(row), tuple(args[3]), tuple([a.itemsize for a in args[1][0]]))
                if asked is not None:
                    ask = len(rec.asks)
                    rec.asks.append(asked)
                    self.asked = None
                    if asked.__class__ is tuple:
                        rec.stores[asked[1].store].last = len(rec.steps)
            rec.held.append(made)
            drawn = None
            if name in _DRAWING and made is launched[-1][0]:  # a copy may come before it
                at, place = _DRAWING[name]
                which = self._which_draw(args[at], args[at + 1])
                drawn = Drawn(*which, args[at + 1] % 4, place)
            for a in arrays:
                if any(a is t for t in made.holds):
                    rec.store(a, "table")
            pieces = tuple([rec.piece(a, "scratch") for a in arrays])
            kinds = made.kernel.kinds[1 + made.buffers + len(made.ints) :]
            where = (made.kernel.name, made.kernel.address, pool)
            scratch = [p.store for p in pieces if rec.stores[p.store].origin == "scratch"]
            step = Launched(
                *where,
                pieces,
                made.ints,
                tuple(numbers),
                tuple(kinds),
                ask,
                table,
                written.union(scratch),
                drawn=drawn,
            )
            if made.kernel.name.startswith("map_") and len(launched) == 1:
                step = step._replace(map=self._mapped(name, args, found, step))
            rec.steps.append(step)

    def _mapped(
        self, name: str, args: tuple[Any, ...], found: Any, step: Launched
    ) -> Mapped | None:
        """What a launch computes, if it is a map of one type."""
        exprs: tuple[Any, ...] = (arg(0),)
        operands: Sequence[Any] = step.pieces[1:]
        pieces, outs = list(step.pieces), 1
        if name in ("map", "maps"):
            exprs = tuple(args[0]) if name == "maps" else args[:1]
            operands, outs = args[1], len(exprs)
        elif name == "add_into":
            exprs, operands = _SUMS, (args[0], args[1])
        elif name in ("copy", "assign", "full") and len(pieces) == 2:  # moves words
            dtype = (args[0] if name == "assign" else found).dtype
            if name == "assign" and args[1].dtype != dtype:
                return None
            pieces = [p._replace(dtype=dtype) for p in pieces]
        else:
            return None
        ins = pieces[outs:]
        types = [type_of(p.dtype) for p in ins]
        if len(ins) + len(step.numbers) != len(operands) or "" in types:
            return None
        arrays, numbers, order = 0, len(ins), []
        for o in operands:
            if isinstance(o, (_ndarray, Piece)):
                order.append(arrays)
                arrays += 1
            else:
                order.append(numbers)
                numbers += 1
        compute = scalar_type(next((t for t in types if t != "bool"), "bool"))
        return Mapped(exprs, tuple(order), tuple(ins), tuple(pieces[:outs]), compute)

    def _check(self, k: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        rec = self.recording
        given = rec.described(args)
        answer = getattr(CpuBackend, name)(k, *args, **kwargs)
        plain = answer.item() if isinstance(answer, (np.generic, _ndarray)) else answer
        rec.steps.append(Checked(name, given, tuple(kwargs.items()), plain))
        return answer

    def tell(self, act: Callable[[], Any]) -> None:
        """Note something that is done on the host, in this place."""
        self.first_write = min(self.first_write, len(self.recording.steps))
        self.recording.steps.append(Told(len(self.recording.told)))
        self.recording.told.append(act)

    def draw(self, generator: Any, count: int, seed: int, offset: int) -> None:
        """Note that so many random words were reserved."""
        self.recording.draws.append((generator, count))
        self.drawn.append((seed, offset, offset + count))

    def _which_draw(self, seed: int, offset: int) -> tuple[int, int]:
        for i in range(len(self.drawn) - 1, -1, -1):
            known, first, last = self.drawn[i]
            if known == seed and first <= offset < last:
                return i, offset - first
        self.refuse("random numbers that come from no generator")
        return 0, 0

    def refuse(self, why: str) -> None:
        """Note why this cannot become a program."""
        if self.refused is None:
            self.refused = why


def _targets(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Sequence[Any]:
    """The arrays among a form's arguments that it writes into."""
    if name in ("assign", "add_into", "add_product", "conv"):
        return args[:1]
    if name == "zero":
        return list(args[0])
    if name == "update":
        return [row[p] for row in args[1] for p in args[3]]
    if name in ("maps", "map"):
        given = args[3] if len(args) > 3 else kwargs.get("outs" if name == "maps" else "out")
        return () if given is None else given if name == "maps" else [given]
    if name in ("scatter", "put"):
        last = 5 if name == "scatter" else 4
        return args[1:2] if kwargs.get("inplace") or (len(args) > last and args[last]) else ()
    return args[1:2] if name == "recurrent" else ()


def _arrays(found: Any, place: tuple[int, ...] = ()) -> list[tuple[tuple[int, ...], Any]]:
    """The arrays in what a form gives, and where they are."""
    if isinstance(found, _ndarray):
        return [(place, found)]
    if isinstance(found, (tuple, list)):
        return [pair for i, x in enumerate(found) for pair in _arrays(x, (*place, i))]
    return []


# Forms as launches ------------------------------------------------------------------------------
_NOT = object()  # nothing has happened: it is to be a call


def _or_not(found: Any) -> Any:
    return _NOT if found is None else found


def _full_of(arrays: Sequence[Any]) -> bool:
    return all(a.size for a in arrays if a.__class__ is _ndarray)


def _maps(k: Any, exprs: Any, operands: Any, dtypes: Any, outs: Any = None) -> Any:
    if not any(o.__class__ is _ndarray for o in operands) or not _full_of(operands):
        return _NOT
    if outs is not None and not all(maps.apart(out, operands) for out in outs):
        return _NOT
    if outs is not None and not _full_of(outs):
        return _NOT
    return _or_not(maps.run_maps(tuple(exprs), operands, tuple(dtypes), outs or ()))


def _map(k: Any, expr: Any, operands: Any, dtype: Any, out: Any = None) -> Any:
    found = _maps(k, (expr,), operands, (dtype,), None if out is None else (out,))
    return found if found is _NOT else found[0]


def _add_into(k: Any, target: Any, value: Any) -> Any:
    if np.may_share_memory(target, value) or not target.size:
        return _NOT
    found = maps.run_maps(_SUMS, (target, value), (target.dtype,), (target,))
    return _NOT if found is None else None


def _reduce(k: Any, kind: str, x: Any, dims: Any, keepdim: Any) -> Any:
    if keepdim.__class__ is not bool or not x.size:
        return _NOT
    return _or_not(reductions.run_reduce(kind, x, dims, keepdim))


def _map_reduce(
    k: Any, kind: str, expr: Any, operands: Any, dims: Any, keepdim: bool, dtype: Any
) -> Any:
    if not _full_of(operands):
        return _NOT
    return _or_not(reductions.run_map_reduce(kind, expr, operands, dims, keepdim, dtype))


def _rows(k: Any, program: Any, operands: Any, dims: Any, dtypes: Any) -> Any:
    if not _full_of(operands):
        return _NOT
    return _or_not(rows.run_rows(program, operands, dims, dtypes))


def _matmul(k: Any, a: Any, b: Any, bias: Any = None) -> Any:
    if a.dtype not in _EXACT or b.dtype != a.dtype or not a.size or not b.size:
        return _NOT
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-2]:
        return _NOT
    if bias is not None and not (bias.flags.c_contiguous and bias.dtype == a.dtype):
        return _NOT
    return gemm(a, b, bias=bias)


def _add_product(k: Any, target: Any, a: Any, b: Any) -> Any:
    if a.dtype not in _EXACT or not a.size or not b.size:
        return False
    return bool(run_add_product(target, a, b))


def _update(k: Any, exprs: Any, many: Any, numbers: Any, places: Any) -> Any:
    if not many or not all(updates._dense(row) and row[0].size for row in many):
        return _NOT
    left = updates.run_update(exprs, many, numbers, places)
    return _NOT if left else None


def _copy(k: Any, x: Any) -> Any:
    return _or_not(copies.run_copy(x)) if x.size else _NOT


def _cast(k: Any, x: Any, dtype: Any) -> Any:
    if not x.size or (dtype == np.uint64 and x.dtype.kind not in "iub"):
        return _NOT
    return _or_not(copies.run_cast(x, dtype))


def _assign(k: Any, target: Any, source: Any) -> Any:
    if not target.size or (target.dtype == np.uint64 and source.dtype.kind not in "iub"):
        return _NOT
    return None if copies.run_assign(target, source) else _NOT


def _full(k: Any, shape: Any, value: Any, dtype: Any) -> Any:
    assert _tape is not None
    out = k.empty(shape, np.dtype(dtype))
    if not out.size:
        return _NOT
    one = np.full((), value, dtype)
    _tape.recording.piece(one)  # a constant
    return out if copies.run_assign(out, one) else _NOT


def _zero(k: Any, arrays: Any) -> Any:
    assert _tape is not None
    if not _full_of(arrays):
        return _NOT
    for a in arrays:
        nothing = np.zeros((), a.dtype)
        _tape.recording.piece(nothing)
        if not copies.run_assign(a, nothing):
            return _NOT
    return None


def _concat(k: Any, arrays: Any, dim: int) -> Any:
    return _or_not(copies.run_concat(arrays, dim)) if _full_of(arrays) else _NOT


def _gather(k: Any, x: Any, dim: int, index: Any) -> Any:
    return _or_not(indexing.run_gather(x, dim, index)) if x.size and index.size else _NOT


def _take(k: Any, x: Any, index: Any) -> Any:
    return _or_not(indexing.run_take(x, index)) if x.size and _full_of(index) else _NOT


def _scan(k: Any, kind: str, x: Any, dim: int) -> Any:
    if kind == "logaddexp" or not x.size:
        return _NOT
    return _or_not(scans.run_scan(kind, (x,), dim))


def _window(k: Any, kind: str, x: Any, *steps: Any, **more: Any) -> Any:
    return _or_not(windows.run_window(kind, x, *steps, **more)) if x.size else _NOT


def _convolution(
    k: Any,
    wanted: str,
    a: Any,
    b: Any,
    bias: Any,
    geometry: Geometry,
    groups: int,
    relu: bool = False,
) -> Any:
    assert _tape is not None
    later: list[Any] = []
    out = run_convolution(wanted, a, b, bias, geometry, groups, relu, k, _cpu._launching, later)
    if out is not None and any(later):  # else it is right for sure
        _tape.mend = (out, *later, wanted, a, b, bias, geometry, groups, relu)
    return _or_not(out)


def _lined(*arrays: Any) -> bool:
    return all(
        a is None or (a.strides[-1] == a.itemsize and aligned(a) and a.size > 0) for a in arrays
    )


def _attention(k: Any, q: Any, key: Any, v: Any, mask: Any, scale: float, causal: bool) -> Any:
    if q.dtype not in _EXACT or not _lined(q, key, v):
        return _NOT
    if mask is not None and not (aligned(mask) and mask.size):
        return _NOT
    return attention.run_attention(q, key, v, mask, scale, causal)


def _attention_backward(
    k: Any,
    g: Any,
    q: Any,
    key: Any,
    v: Any,
    mask: Any,
    out: Any,
    lse: Any,
    scale: float,
    causal: bool,
) -> Any:
    if q.dtype not in _EXACT or not _lined(g, q, key, v, out) or not lse.flags.c_contiguous:
        return _NOT
    if mask is not None and not (aligned(mask) and mask.size):
        return _NOT
    return attention.run_attention_backward(g, q, key, v, mask, out, lse, scale, causal)


def _scatter(
    k: Any, kind: str, x: Any, dim: int, index: Any, source: Any, inplace: bool = False
) -> Any:
    if not _full_of([x, index, source]) or x.dtype.kind not in "fiu" or x.itemsize < 4:
        return _NOT
    return _or_not(scatter.run_scatter(kind, x, dim, index, source, inplace))


def _put(k: Any, kind: str, x: Any, index: Any, source: Any, inplace: bool = False) -> Any:
    if not _full_of([x, source, *index]) or x.dtype.kind not in "fiu" or x.itemsize < 4:
        return _NOT
    return _or_not(scatter.run_put(kind, x, tuple(index), source, inplace))


def _philox(k: Any, seed: int, offset: int, count: int) -> Any:
    return random.run_philox(seed, offset, count) if count else _NOT


def _random_map(k: Any, expr: Any, x: Any, numbers: Any, limit: int, seed: int, offset: int) -> Any:
    return _or_not(random.run_random_map(expr, x, numbers, limit, seed, offset)) if x.size else _NOT


def _recurrent(k: Any, kind: str, gates: Any, *given: Any) -> Any:
    if gates.dtype not in _EXACT or not _full_of([gates, *given]):
        return _NOT
    return recurrent.run_recurrent(kind, gates, *given)


def _recurrent_backward(k: Any, kind: str, g: Any, *given: Any) -> Any:
    if g.dtype not in _EXACT or not _full_of([g, *given]):
        return _NOT
    return recurrent.run_recurrent_backward(kind, g, *given)


# Where among a form's arguments the seed is, and where among the launch's numbers the block.
_DRAWING = {"philox": (0, 1), "random_map": (-2, 0)}
_NATIVE: dict[str, Callable[..., Any]] = {
    "maps": _maps,
    "map": _map,
    "add_into": _add_into,
    "reduce": _reduce,
    "map_reduce": _map_reduce,
    "rows": _rows,
    "matmul": _matmul,
    "add_product": _add_product,
    "update": _update,
    "copy": _copy,
    "cast": _cast,
    "assign": _assign,
    "full": _full,
    "zero": _zero,
    "concat": _concat,
    "gather": _gather,
    "take": _take,
    "scan": _scan,
    "window": _window,
    "convolution": _convolution,
    "attention": _attention,
    "attention_backward": _attention_backward,
    "scatter": _scatter,
    "put": _put,
    "philox": _philox,
    "random_map": _random_map,
    "recurrent": _recurrent,
    "recurrent_backward": _recurrent_backward,
}
# Forms that compute nothing, or compute by other forms that are written down themselves.
_PASSED = frozenset(
    [
        "begin",
        "end",
        "run",
        "prepare",
        "direct",
        "contiguous",
        "writable",
        "memory",
        "owned",
        "address",
        "storage_offset",
        "storage_size",
        "as_strided",
        "reshape",
        "permute",
        "transposed",
        "expand",
        "slice",
        "part",
        "bits",
        "lift",
        "whole",
        "all_plain",
        "empty",
        "table",
        "from_host",
        "to_host",
        "transfer",
        "norms",
    ]
)
_FORMS = [
    name
    for name, form in vars(Backend).items()
    if not name.startswith("_") and callable(form) and name not in _PASSED
]


class RecordingCpu(CpuBackend):
    """See Note [taking the CPU's place]; its forms are made below."""

    def prepare(
        self, exprs: tuple[Any, ...], arrays: tuple[bool, ...], largest: bool = False
    ) -> Callable[..., Any]:
        if _mine() is None:
            return CpuBackend.prepare(self, exprs, arrays, largest)
        return Backend.prepare(self, exprs, arrays, largest)

    def to_host(self, array: Any) -> Any:
        tape = _mine()
        if tape is None or tape.depth or tape.quiet:
            return CpuBackend.to_host(self, array)
        if array.size == 1 and array.dtype == np.bool_:  # a branch: it is to go the same way again
            tape.depth += 1
            try:
                return tape.form(self, "to_host", (array,), {})
            finally:
                tape.depth -= 1
        tape.reads.append(array)
        tape.told_of_reads()
        return CpuBackend.to_host(self, array)

    def empty(self, shape: Any, dtype: Any) -> Any:
        found = CpuBackend.empty(self, shape, dtype)
        tape = _mine()
        if tape is not None and not tape.depth:
            tape.recording.store(found, "made")
        return found

    def norms(self, arrays: Sequence[Any]) -> Any:
        """One reduction after the other, which are written down."""
        if _mine() is None:
            return CpuBackend.norms(self, arrays)
        squares = [
            self.map_reduce("sum", _cpu._SQUARE, [a], _cpu._every(a), False, a.dtype)
            for a in arrays
        ]
        return [self.map(_ROOT, (s,), s.dtype) for s in squares]

    def table(self, make: Callable[..., Any], *args: Any) -> Any:
        found = CpuBackend.table(self, make, *args)
        tape = _mine()
        if tape is not None and not tape.depth:
            tape.recording.store(found, "table")
        return found


_ROOT = trace(lambda x: call("sqrt", x), 1)


def _recorded(name: str) -> Callable[..., Any]:
    plain = getattr(CpuBackend, name)

    def form(self: Any, *args: Any, **kwargs: Any) -> Any:
        tape = _mine()
        if tape is None or tape.depth:
            return plain(self, *args, **kwargs)
        tape.depth += 1
        profile = sys.getprofile()  # nobody's functions but ours run inside
        sys.setprofile(None)
        try:
            return tape.form(self, name, args, kwargs)
        finally:
            sys.setprofile(profile)
            tape.depth -= 1

    form.__name__ = name
    return form


for _name in _FORMS:
    setattr(RecordingCpu, _name, _recorded(_name))

_tape: Tape | None = None


def _mine() -> Tape | None:
    """The tape, for the thread that records."""
    tape = _tape
    return tape if tape is not None and tape.thread == threading.get_ident() else None


def begin(cpu: Any) -> Tape | None:
    """Take the CPU's place; None if somebody has it."""
    global _tape
    if not _lock.acquire(blocking=False):
        return None
    _tape = Tape()
    launch.tap(True)
    cpu.__class__ = RecordingCpu
    return _tape


def end(cpu: Any) -> None:
    """Give it back."""
    global _tape
    cpu.__class__ = CpuBackend
    launch.tap(False)
    _tape = None
    _lock.release()
