"""What `UNDERTOW_DEBUG` prints about kernels, to stderr: any of the WORDS below.

`ir` shows a kernel's loops and its LLVM IR as generated, `asm` the assembly, and `kernels` one line
each: where it came from, how long that took, its size and why it was chosen. `launches` shows each
launch of the CPU: kernel, arrays, numbers, bytes and operations. `text` shows what a
device that runs generated text is given, `wgsl` what WebGPU is; with `webgpu` that runs launch by
launch, so that errors name theirs.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ArgumentError

PATIENCE = 1.0  # seconds of compiling before a terminal is told
WORDS = ("ir", "asm", "kernels", "launches", "text", "wgsl", "webgpu")

# Who runs a launch, told of kernel, arrays, numbers and operations, by calling the last argument.
Watcher = Callable[[str, Sequence[Any], Sequence[Any], int, Callable[[], None]], None]
# Of each backend that launches kernels: sets who watches that, None for nobody; gives who did.
WATCHED: list[Callable[[Watcher | None], Watcher | None]] = []


@functools.cache
def wanted() -> frozenset[str]:
    """What the environment asks for."""
    words = os.environ.get("UNDERTOW_DEBUG", "").replace(",", " ").split()
    for word in words:
        if word not in WORDS:
            raise ArgumentError(
                f"UNDERTOW_DEBUG may name {', '.join(WORDS)} (several with commas), got {word!r}"
            )
    return frozenset(words)


def wants(word: str) -> bool:
    """Whether this is asked for."""
    return word in wanted()


def watch_launches(watcher: Watcher) -> Callable[[], None]:
    """Let somebody run every launch; returns what ends that."""
    before = [(watch, watch(watcher)) for watch in WATCHED]

    def end() -> None:
        for watch, earlier in before:
            watch(earlier)

    return end


def launch(name: str, arrays: Sequence[Any], numbers: Sequence[Any], work: int) -> None:
    """Print the line about one launch."""
    shown = " ".join([f"{a.dtype.name}{list(a.shape)}" for a in arrays])
    beside = f" {list(numbers)}" if numbers else ""
    size = sum([a.nbytes for a in arrays])
    done = f", {work} operations" if work else ""
    _print(f"undertow: launch {name} {shown}{beside}, {size} bytes{done}\n")


def listing(kind: str, name: str, text: str) -> None:
    """Print a listing of a kernel, if this kind is wanted."""
    if kind in wanted():
        _print(f"; undertow {kind} of {name}\n{text.rstrip()}\n")


def loops(name: str, source: str | Callable[[], str] | None) -> None:
    """Print the loops that a kernel was made from, if they are wanted and known."""
    if source is not None and "ir" in wanted():
        text = source if isinstance(source, str) else source()
        _print(f"// undertow loops of {name}\n{text.rstrip()}\n")


def kernel(name: str, origin: str, seconds: float, size: int, why: str) -> None:
    """Print the line about one kernel, if wanted."""
    if "kernels" in wanted():
        reason = f": {why}" if why else ""
        _print(f"undertow: {name} {origin}, {seconds * 1e3:.2f} ms, {size} bytes{reason}\n")


_compiling = [0, 0.0, False]  # kernels, seconds, and whether that was told


def compiled(seconds: float) -> None:
    """Tell a terminal once that the wait is for compiling, after a second of it."""
    _compiling[0] += 1
    _compiling[1] += seconds
    if _compiling[1] > PATIENCE and not _compiling[2]:
        _compiling[2] = True
        if sys.stderr is not None and sys.stderr.isatty():
            _print(f"undertow: compiling {_compiling[0]} kernels and more; once for each ...\n")


def note(text: str) -> None:
    """Print a remark among the lines about kernels."""
    if "kernels" in wanted():
        _print(f"undertow: {text}\n")


def _print(text: str) -> None:
    sys.stderr.write(text)  # in one piece, so that threads do not mix
    sys.stderr.flush()
