"""Events of a profile: which happened inside of which, what they have in common, and as a table."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ...errors import ArgumentError
from .limits import limits
from .recorder import Raw, Recorder

# What a table shows unless it is told: what a program did, not what that was made of.
KINDS = ("op", "backward", "optimizer", "mark", "step", "module", "kernel")
MADE_OF = ("form", "launch")
_UNITS = ((1e6, "s"), (1e3, "ms"), (1.0, "us"))


class Interval:
    """A time with a beginning and an end, in microseconds since the profile began."""

    __slots__ = ("end", "start")

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """How long it is."""
        return self.end - self.start


class FunctionEvent:
    """One call, launch, step of a backward pass, or marked block; times in microseconds."""

    count = 1
    is_async = is_remote = False
    device_time = device_time_total = self_device_time_total = 0.0
    device_memory_usage = self_device_memory_usage = 0

    def __init__(self, id: int, raw: Raw, began: int) -> None:
        self.id = id
        self.kind = raw.kind
        self.name = self.key = self.trace_name = raw.name
        self.thread = raw.thread
        self.time_range = Interval((raw.begin - began) / 1e3, (raw.end - began) / 1e3)
        self.input_shapes = [] if raw.shapes is None else raw.shapes
        self.sequence_nr = raw.sequence
        self.stack = list(raw.stack)
        self.bytes = raw.bytes
        self.flops = raw.flops
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []
        self.self_cpu_memory_usage = 0
        self.cpu_memory_usage = 0
        self.is_user_annotation = raw.kind in ("mark", "step")

    @property
    def cpu_time_total(self) -> float:
        """From its beginning to its end."""
        return self.time_range.elapsed_us()

    cpu_time = cpu_time_total

    @property
    def self_cpu_time_total(self) -> float:
        """Without what happened inside of it."""
        return self.cpu_time_total - sum([c.cpu_time_total for c in self.cpu_children])

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={duration(self.cpu_time)} "
            f"thread={self.thread} input_shapes={self.input_shapes}>"
        )


class EventList(list[Any]):
    """Events, or averages of them."""

    def __init__(self, events: Iterable[Any] = (), recorder: Recorder | None = None) -> None:
        super().__init__(events)
        self._recorder = recorder

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all of them, each without what happened inside of it."""
        return sum([e.self_cpu_time_total for e in self])

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """What events of one name, and if asked of one stack or shapes, have in common."""
        groups: dict[Any, FunctionEventAvg] = {}
        for event in self:
            key: tuple[Any, ...] = (event.kind, event.name)
            if group_by_input_shapes:
                key += (str(event.input_shapes),)
            if group_by_stack_n:
                key += tuple(event.stack[:group_by_stack_n])
            if key not in groups:
                groups[key] = FunctionEventAvg(event, group_by_input_shapes, group_by_stack_n)
            groups[key].add(event)
        return EventList(groups.values(), self._recorder)

    def total_average(self) -> FunctionEventAvg:
        """All of them together."""
        found = FunctionEventAvg(None, False, 0)
        for event in self:
            found.add(event)
        found.key = "Total"
        return found

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """As text, the largest of `sort_by` first.

        Rows of launches tell bytes and operations by the second, too.
        """
        rows = [e for e in self if not top_level_events_only or e.cpu_parent is None]
        if sort_by is not None:
            if sort_by not in SORTED_BY:
                raise ArgumentError(f"[table] sorts by {', '.join(SORTED_BY)}, got {sort_by!r}")
            rows.sort(key=lambda e: getattr(e, _SAME.get(sort_by, sort_by)), reverse=True)
        everything = sum([e.self_cpu_time_total for e in self]) or 1.0
        columns = _columns(rows, everything, max_name_column_width, max_shapes_column_width)
        if time_unit is not None and time_unit not in ("s", "ms", "us"):
            raise ArgumentError(f"[table] time_unit is s, ms or us, got {time_unit!r}")
        cells = [
            [column.show(e, time_unit) for column in columns] for e in rows[: max(row_limit, 0)]
        ]
        if row_limit < 0:
            cells = [[column.show(e, time_unit) for column in columns] for e in rows]
        text = laid_out([column.title for column in columns], cells)
        lines = [header] if header else []
        lines += [text, f"Self CPU time total: {duration(everything, time_unit)}"]
        if len(cells) < len(rows):
            lines.append(f"({len(rows) - len(cells)} more rows; row_limit=-1 shows all)")
        return "\n".join(lines) + "\n"

    def export_chrome_trace(self, path: str) -> None:
        """Write a file that Perfetto and chrome://tracing show."""
        from .chrome import write_trace

        if self._recorder is None:
            raise ArgumentError("[export_chrome_trace] averages have no times; ask the profile")
        write_trace(path, self, self._recorder)

    def export_stacks(self, path: str, metric: str) -> None:
        """Write the stacks with their times, in the format of flame graphs."""
        from .chrome import write_stacks

        write_stacks(path, self, metric)

    def __str__(self) -> str:
        return self.table()


class FunctionEventAvg:
    """What events of one name have in common; times in microseconds."""

    cpu_parent = None
    device_time = device_time_total = self_device_time_total = 0.0
    device_memory_usage = self_device_memory_usage = 0

    def __init__(self, first: FunctionEvent | None, shapes: bool, stack: int) -> None:
        self.key = "" if first is None else first.name
        self.kind = "" if first is None else first.kind
        self.input_shapes = first.input_shapes if shapes and first is not None else []
        self.stack = first.stack[:stack] if first is not None else []
        self.is_user_annotation = first is not None and first.is_user_annotation
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.flops = self.bytes = 0

    def add(self, event: Any) -> FunctionEventAvg:
        """One more."""
        self.count += event.count
        self.self_cpu_time_total += event.self_cpu_time_total
        self.self_cpu_memory_usage += event.self_cpu_memory_usage
        self.bytes += event.bytes
        if not _inside_its_like(event):  # else the outer one has counted it
            self.cpu_time_total += event.cpu_time_total
            self.cpu_memory_usage += event.cpu_memory_usage
            self.flops += event.flops
        return self

    @property
    def cpu_time(self) -> float:
        """The time of one, on average."""
        return self.cpu_time_total / self.count if self.count else 0.0

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} count={self.count} "
            f"self_cpu_time={duration(self.self_cpu_time_total)} "
            f"cpu_time={duration(self.cpu_time_total)}>"
        )


def _inside_its_like(event: Any) -> bool:
    outer = event.cpu_parent
    while outer is not None:
        if outer.name == event.name and outer.kind == event.kind:
            return True
        outer = outer.cpu_parent
    return False


# From what was recorded ---------------------------------------------------------------------------
def tree(recorder: Recorder, kinds: Sequence[str] | None = None) -> EventList:
    """The events of these kinds, in the order of their beginnings, each with those inside of it.

    Operations are counted by the outermost who knows them: a product by its form, not again by the
    launch inside.
    """
    began = recorder.begin
    raws = [Raw(*e) for e in recorder.events]
    raws = [r for r in raws if r.begin >= began]
    raws.sort(key=lambda r: (r.begin, -r.end))
    every = [FunctionEvent(i, raw, began) for i, raw in enumerate(raws)]
    every = _nested(every)
    _count_operations(every, recorder.wanted.flops)
    if recorder.changes:
        _count_memory(every, recorder)
    chosen = every
    if kinds is not None:
        chosen = [e for e in every if e.kind in kinds]
        for event in chosen:
            event.cpu_children = []
        for event in chosen:
            outer = event.cpu_parent
            while outer is not None and outer.kind not in kinds:
                outer = outer.cpu_parent
            event.cpu_parent = outer
            if outer is not None:
                outer.cpu_children.append(event)
        for event in chosen:
            event.self_cpu_memory_usage = event.cpu_memory_usage - sum(
                [c.cpu_memory_usage for c in event.cpu_children]
            )
    return EventList(chosen, recorder)


def _nested(events: list[FunctionEvent]) -> list[FunctionEvent]:
    """The events, each told what is inside of it.

    An operator or a method that calls the function of its name is one call with it.
    """
    kept = []
    open_: dict[int, list[FunctionEvent]] = defaultdict(list)
    for event in events:
        stack = open_[event.thread]
        while stack and stack[-1].time_range.end <= event.time_range.start:
            stack.pop()
        # A kernel's beginning is reckoned from its end, so it may stick out a little.
        while stack and stack[-1].time_range.end < event.time_range.end:
            stack.pop()
        if stack:
            outer = stack[-1]
            if event.kind == outer.kind == "op" and event.name == outer.name:
                continue
            event.cpu_parent = outer
            outer.cpu_children.append(event)
        stack.append(event)
        kept.append(event)
    return kept


def _count_operations(events: list[FunctionEvent], wanted: bool) -> None:
    for event in reversed(events):  # those inside come after it
        if wanted and not event.flops:
            event.flops = sum([c.flops for c in event.cpu_children])
        if event.kind != "launch" and event.kind != "kernel":
            event.bytes = sum([c.bytes for c in event.cpu_children if c.kind != "kernel"])


def _count_memory(events: list[FunctionEvent], recorder: Recorder) -> None:
    by_thread: dict[int, tuple[list[float], list[int]]] = {}
    for change in recorder.changes[1:]:
        times, sums = by_thread.setdefault(change.thread, ([], [0]))
        times.append((change.time - recorder.begin) / 1e3)
        sums.append(sums[-1] + change.bytes)
    for event in events:
        times, sums = by_thread.get(event.thread, ([], [0]))
        first = bisect.bisect_left(times, event.time_range.start)
        last = bisect.bisect_right(times, event.time_range.end)
        event.cpu_memory_usage = sums[last] - sums[first]
    for event in events:
        inside = sum([c.cpu_memory_usage for c in event.cpu_children])
        event.self_cpu_memory_usage = event.cpu_memory_usage - inside


# Text ---------------------------------------------------------------------------------------------
def duration(us: float, unit: str | None = None) -> str:
    """A time with its unit.

    >>> duration(1234.5), duration(0.25), duration(1234.5, "s")
    ('1.234ms', '0.250us', '0.001s')
    """
    for size, name in _UNITS:
        if name == unit or (unit is None and (us >= size or name == "us")):
            return f"{us / size:.3f}{name}"
    raise AssertionError


def amount(value: float, unit: str, base: int = 1000) -> str:
    """A number with a unit and its prefix.

    >>> amount(2.5e9, "FLOPs"), amount(-2048, "b", 1024), amount(12, "b", 1024)
    ('2.50 GFLOPs', '-2.00 Kb', '12 b')
    """
    prefixes = ["", "K", "M", "G", "T", "P"]
    left = float(value)
    while abs(left) >= base and len(prefixes) > 1:
        left /= base
        prefixes.pop(0)
    number = f"{left:.2f}" if prefixes[0] else f"{left:.0f}"
    return f"{number} {prefixes[0]}{unit}"


class _Column(NamedTuple):
    title: str
    show: Any  # (event, unit of times) -> text


SORTED_BY = (
    *("cpu_time", "cpu_time_total", "self_cpu_time_total", "count", "cpu_memory_usage"),
    *("self_cpu_memory_usage", "flops", "bytes", "device_time", "device_time_total", "cuda_time"),
    *("self_device_time_total", "cuda_time_total", "self_cuda_time_total", "xpu_time_total"),
)
_SAME = {
    "cuda_time": "device_time",
    "cuda_time_total": "device_time_total",
    "self_cuda_time_total": "self_device_time_total",
    "xpu_time_total": "device_time_total",
}


def _columns(rows: Sequence[Any], everything: float, name: int, shapes: int) -> list[_Column]:
    def short(text: str, width: int) -> str:
        return text if len(text) <= width or width <= 3 else f"{text[: width - 3]}..."

    def share(part: float) -> str:
        return f"{100 * part / everything:.2f}%"

    columns = [
        _Column("Name", lambda e, unit: short(_title(e), name)),
        _Column("Self CPU %", lambda e, unit: share(e.self_cpu_time_total)),
        _Column("Self CPU", lambda e, unit: duration(e.self_cpu_time_total, unit)),
        _Column("CPU total %", lambda e, unit: share(e.cpu_time_total)),
        _Column("CPU total", lambda e, unit: duration(e.cpu_time_total, unit)),
        _Column("CPU time avg", lambda e, unit: duration(e.cpu_time, unit)),
    ]
    if any(e.cpu_memory_usage or e.self_cpu_memory_usage for e in rows):
        columns += [
            _Column("CPU Mem", lambda e, unit: amount(e.cpu_memory_usage, "b", 1024)),
            _Column("Self CPU Mem", lambda e, unit: amount(e.self_cpu_memory_usage, "b", 1024)),
        ]
    columns.append(_Column("# of Calls", lambda e, unit: str(e.count)))
    if any(e.input_shapes for e in rows):
        columns.append(_Column("Input Shapes", lambda e, unit: short(str(e.input_shapes), shapes)))
    if any(e.stack for e in rows):
        columns.append(
            _Column("Source Location", lambda e, unit: short(e.stack[0] if e.stack else "", 75))
        )
    if any(e.flops for e in rows):
        columns.append(_Column("Total FLOPs", lambda e, unit: _or_dash(e.flops, "FLOP")))
    if rows and all(e.kind == "launch" for e in rows):
        columns += [
            _Column("Bytes", lambda e, unit: amount(e.bytes, "B")),
            _Column("B/s", lambda e, unit: _rate(e.bytes, e.cpu_time_total, "B/s")),
            _Column("FLOP/s", lambda e, unit: _rate(e.flops, e.cpu_time_total, "FLOP/s")),
            _Column("% of limit", lambda e, unit: _of_limit(e)),
        ]
    return columns


def _title(event: Any) -> str:
    return f"{event.kind}: {event.key}" if event.kind in ("form", "kernel") else str(event.key)


def _or_dash(value: float, unit: str) -> str:
    return amount(value, unit) if value else "--"


def _rate(value: float, us: float, unit: str) -> str:
    return amount(value / us * 1e6, unit) if value and us else "--"


def _of_limit(event: Any) -> str:
    share = limits().share(event.bytes, event.flops, event.cpu_time_total / 1e6)
    return f"{100 * share:.1f}%"


def laid_out(titles: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """Rows of text below titles, the first column on the left."""
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    line = "  ".join("-" * w for w in widths)

    def row(texts: Sequence[str]) -> str:
        first, *others = zip(texts, widths, strict=True)
        return "  ".join([first[0].ljust(first[1]), *(t.rjust(w) for t, w in others)]).rstrip()

    return "\n".join([line, row(titles), line, *map(row, cells), line])
