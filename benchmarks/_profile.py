"""Where the time of one workload goes: the forms that ran, their kernels, and Python around them.

The methods of the CPU's backend are wrapped, and so are the generated kernels as they are made;
so `watch` comes before the first kernel.
"""

from __future__ import annotations

import cProfile
import ctypes
import pstats
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
from _race import clock_for

import undertow as ut
from undertow.backends.registry import CPU

VIEWS = {
    "as_strided",
    "storage_offset",
    "root",
    "reshape",
    "permute",
    "expand",
    "slice",
    "part",
    "bits",
    "to_host",
    "from_host",
}


_prototype = ctypes.CFUNCTYPE


class Record:
    """What one kind of call took."""

    def __init__(self) -> None:
        self.calls = 0
        self.own = 0.0  # seconds, without the forms that it called itself
        self.native = 0.0  # of these, inside generated kernels

    def add(self, other: Record) -> None:
        """Count another's calls as well."""
        self.calls += other.calls
        self.own += other.own
        self.native += other.native


class Watch:
    """Counts and times the backend's forms while it is switched on."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = defaultdict(Record)
        self.open: list[list[float]] = []  # of the calls under way: time in inner calls, kernels
        self.on = False
        self.clock = clock_for(ut.get_num_threads())

    def form(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """A form that is timed."""

        def timed(*args: Any, **named: Any) -> Any:
            if not self.on:
                return function(*args, **named)
            clock, inner = self.clock, [0.0, 0.0]
            self.open.append(inner)
            begin = clock()
            try:
                return function(*args, **named)
            finally:
                spent = clock() - begin
                self.open.pop()
                record = self.records[_label(name, args)]
                record.calls += 1
                record.own += spent - inner[0]
                record.native += inner[1]
                if self.open:
                    self.open[-1][0] += spent

        return timed

    def prototype(self, *types: Any) -> Any:
        """Like `ctypes.CFUNCTYPE`, by which every module makes functions of addresses; timed."""
        watch = self
        plain: Any = _prototype(*types)

        class Kernel(plain):
            _flags_, _restype_, _argtypes_ = plain._flags_, plain._restype_, plain._argtypes_

            def __call__(self, *args: Any) -> Any:
                begin = watch.clock()
                result = super().__call__(*args)
                if watch.on and watch.open:
                    watch.open[-1][1] += watch.clock() - begin
                return result

        return Kernel


def watch() -> Watch:
    """Begin to watch the CPU's backend; switched off at first."""
    watched = Watch()
    for name in dir(CPU):
        method = getattr(CPU, name)
        if not name.startswith("_") and callable(method) and name not in VIEWS:
            setattr(CPU, name, watched.form(name, method))
    ctypes.CFUNCTYPE = watched.prototype
    return watched


def report(watched: Watch, run: Callable[[], Any], repeat: int = 12) -> None:
    """Run a workload and print what its parts took in the fastest run, the slowest part first."""
    run()
    total, records = min((_timed(watched, run) for _ in range(repeat)), key=lambda found: found[0])
    print(f"{1e3 * total:.3f} ms in all, the least of {repeat} runs; of which, by form:")
    print(f"{'ms':>9} {'share':>6} {'in kernels':>10} {'calls':>6}")
    forms: dict[str, Record] = defaultdict(Record)
    for label, r in records.items():
        forms[label.split()[0]].add(r)
    _print(forms, total)
    rest = total - sum(r.own for r in records.values())
    print(f"{1e3 * rest:>9.3f} {rest / total:>6.1%} {'':>17}  outside the backend")
    print("and by form and arguments:")
    _print(records, total)
    _report_python(run, repeat)


def _timed(watched: Watch, run: Callable[[], Any]) -> tuple[float, dict[str, Record]]:
    """The time of one run, and the records of its forms."""
    watched.records = defaultdict(Record)
    watched.on = True
    begin = watched.clock()
    run()
    total = watched.clock() - begin
    watched.on = False
    return total, watched.records


def _print(records: dict[str, Record], total: float) -> None:
    for label, r in sorted(records.items(), key=lambda item: -item[1].own):
        if r.own > 0.005 * total:
            print(
                f"{1e3 * r.own:>9.3f} {r.own / total:>6.1%} {1e3 * r.native:>10.3f} "
                f"{r.calls:>6}  {label}"
            )


def _report_python(run: Callable[[], Any], repeat: int) -> None:
    """Print the Python functions that take more than a hundredth of the time themselves."""
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(repeat):
        run()
    profiler.disable()
    entries = [
        (own, name, f"{file.rpartition('/undertow/')[2]}:{line}" if line else "")
        for (file, line, name), (_, _, own, _, _) in pstats.Stats(profiler).stats.items()
        if file != __file__  # kernels, which are listed above
    ]
    total = pstats.Stats(profiler).total_tt
    print("and Python functions by their own time, slowed down by the profiler:")
    for own, name, where in sorted(entries, reverse=True)[:12]:
        if own > 0.01 * total:
            print(f"{1e3 / repeat * own:>9.3f} {own / total:>6.1%} {'':>17}  {name}  {where}")


def _label(name: str, args: tuple[Any, ...]) -> str:
    """A form with its arguments in short: shapes and types of arrays, text of expressions."""
    return f"{name} " + ", ".join(_short(a) for a in args)


def _short(a: Any) -> str:
    if isinstance(a, np.ndarray):
        layout = "" if a.flags.c_contiguous else f" strides {a.strides}"
        return f"{a.dtype.name}[{'×'.join(map(str, a.shape))}]{layout}"
    if isinstance(a, list | tuple):
        return f"({', '.join(map(_short, a))})"
    text = str(a).replace("\n", "; ")
    return text if len(text) <= 48 else text[:45] + "…"
