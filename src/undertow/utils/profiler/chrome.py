"""Profiles as files: trace events for Perfetto and chrome://tracing, stacks, a page to look at."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

from ...errors import ArgumentError
from .recorder import Recorder

METRICS = ("self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total")
_PAGE = Path(__file__).with_name("page.html")
_MOST = 60_000  # events that a page shows


def write_text(path: Any, text: str, what: str) -> None:
    """Write a file, compressed if its name ends in .gz; an error tells why that cannot be."""
    try:
        if str(path).endswith(".gz"):
            with gzip.open(path, "wt", encoding="utf-8") as file:
                file.write(text)
        else:
            Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise ArgumentError(f"[{what}] cannot write {str(path)!r}: {reason}") from error


def arrows(events: Iterable[Any]) -> list[tuple[Any, Any]]:
    """Calls with the steps of a backward pass that went through what they made."""
    made: dict[int, Any] = {}
    found = []
    for event in sorted(events, key=lambda e: e.time_range.end):  # of nested calls the innermost
        if event.sequence_nr < 0:
            continue
        if event.kind == "op":
            made.setdefault(event.sequence_nr, event)
        elif event.kind == "backward" and event.sequence_nr in made:
            found.append((made[event.sequence_nr], event))
    return found


def trace(events: Iterable[Any], recorder: Recorder, more: dict[str, Any]) -> dict[str, Any]:
    """The trace-event format: complete events, flows, counters and names, times in microseconds."""
    events = list(events)
    process = os.getpid()
    listed: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": "undertow"}}
    ]
    for thread in sorted({e.thread for e in events}):
        name = recorder.threads.get(thread, f"thread {thread}")
        listed.append(
            {
                "ph": "M",
                "name": "thread_name",
                "pid": process,
                "tid": thread,
                "args": {"name": name},
            }
        )
    for e in events:
        args: dict[str, Any] = {"id": e.id}
        if e.input_shapes:
            args["Input Dims"] = e.input_shapes
        if e.sequence_nr >= 0:
            args["Sequence number"] = e.sequence_nr
        if e.flops:
            args["FLOPs"] = e.flops
        if e.bytes:
            args["bytes"] = e.bytes
        if e.stack:
            args["Call stack"] = ";".join(reversed(e.stack))
        listed.append(
            {
                "ph": "X",
                "cat": e.kind,
                "name": e.name,
                "pid": process,
                "tid": e.thread,
                "ts": e.time_range.start,
                "dur": e.time_range.elapsed_us(),
                "args": args,
            }
        )
    for number, (call, step) in enumerate(arrows(events)):
        shared = {"cat": "fwdbwd", "name": "fwdbwd", "id": number, "pid": process}
        listed.append({**shared, "ph": "s", "tid": call.thread, "ts": call.time_range.start})
        listed.append(
            {**shared, "ph": "f", "bp": "e", "tid": step.thread, "ts": step.time_range.start}
        )
    for time, held in memory_timeline(recorder):
        listed.append(
            {
                "ph": "C",
                "name": "memory",
                "pid": process,
                "tid": 0,
                "ts": time,
                "args": {"bytes": held},
            }
        )
    return {
        "schemaVersion": 1,
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": recorder.begin,
        "threads": {
            name: {"busy_s": on, "ready_s": off} for name, (on, off) in recorder.busy.items()
        },
        **more,
        "traceEvents": listed,
    }


def memory_timeline(recorder: Recorder) -> list[tuple[float, int]]:
    """Bytes that are held, after each change; empty unless memory was watched."""
    held, found = 0, []
    for change in recorder.changes:
        held += change.bytes
        found.append(((change.time - recorder.begin) / 1e3, held))
    return [(max(time, 0.0), size) for time, size in found]


def write_trace(
    path: Any, events: Iterable[Any], recorder: Recorder, more: dict[str, Any] | None = None
) -> None:
    """The trace as a file, compressed if its name ends in .gz."""
    text = json.dumps(trace(events, recorder, more or {}), separators=(",", ":"), default=str)
    write_text(path, text, "export_chrome_trace")


def write_stacks(path: Any, events: Iterable[Any], metric: str) -> None:
    """A line for each stack: frames from the outermost in, and microseconds."""
    if metric not in METRICS:
        raise ArgumentError(f"[export_stacks] metric is one of {', '.join(METRICS)}: {metric!r}")
    sums: dict[str, int] = {}
    for e in events:
        if e.stack:
            frames = [f.replace(";", " ").replace(" ", "_") for f in (*reversed(e.stack), e.name)]
            line = ";".join(frames)
            spent = e.self_cpu_time_total if metric == METRICS[0] else 0
            sums[line] = sums.get(line, 0) + round(spent)
    text = "".join([f"{line} {spent}\n" for line, spent in sums.items() if spent > 0])
    write_text(path, text, "export_stacks")


def write_page(path: Any, events: Iterable[Any], recorder: Recorder, table: str) -> None:
    """One self-contained page: a flame chart to zoom into, memory over time, and the table."""
    events = list(events)
    shown = events
    if len(events) > _MOST:  # the longest of them
        least = sorted([e.cpu_time_total for e in events])[-_MOST]
        shown = [e for e in events if e.cpu_time_total >= least][:_MOST]
    kinds = sorted({e.kind for e in shown})
    names = sorted({e.name for e in shown})
    threads = sorted({e.thread for e in shown})
    place = {name: i for i, name in enumerate(names)}
    number = {e.id: i for i, e in enumerate(shown)}
    rows = []
    for e in shown:
        depth, outer = 0, e.cpu_parent
        while outer is not None:
            depth += 1
            outer = outer.cpu_parent
        rows.append(
            [
                place[e.name],
                kinds.index(e.kind),
                threads.index(e.thread),
                depth,
                round(e.time_range.start, 2),
                round(e.cpu_time_total, 2),
                e.flops,
                e.bytes,
                str(e.input_shapes) if e.input_shapes else 0,
            ]
        )
    pairs = arrows(events)
    data = {
        "kinds": kinds,
        "names": names,
        "threads": [recorder.threads.get(t, f"thread {t}") for t in threads],
        "events": rows,
        "arrows": [
            [number[a.id], number[b.id]] for a, b in pairs if a.id in number and b.id in number
        ],
        "memory": [[round(t, 1), size] for t, size in memory_timeline(recorder)],
        "busy": {name: list(used) for name, used in recorder.busy.items()},
        "seconds": (recorder.end - recorder.begin) / 1e9,
        "left_out": len(events) - len(shown),
    }
    written = json.dumps(data, separators=(",", ":")).replace("</", "<\\/")
    text = _PAGE.read_text(encoding="utf-8")
    text = text.replace("{{table}}", escape(table)).replace("{{data}}", written)
    write_text(path, text, "export_html")
