"""One fuzzer over many seeds: cases made, judged, and when they fail shrunk and printed.

It runs in a process of its own, so that a crash or a hang is a finding like any other.
"""

from __future__ import annotations

import faulthandler
import importlib
import multiprocessing
import os
import time
from typing import Any

import torch

from . import faults, guard
from .case import Case
from .judge import UNDECIDED
from .judge import verdict as judged
from .known import known
from .shrink import shrink

PATIENCE = 120.0  # seconds for one case, shrunk and all; then it hangs
RULE = "-" * 30


def hunt(
    name: str, seed: int, count: int | None, end: float | None, guarded: bool = False
) -> dict[str, int]:
    """Counts after so many cases, or when the clock reaches the end; see `guard`."""
    found = {"cases": 0, "undecided": 0, "failures": 0}
    context = multiprocessing.get_context("spawn")
    last = None if count is None else seed + count
    kernels = {"UNDERTOW_KERNELS": "always"} if name == "compiled" else {}
    while (last is None or seed < last) and (end is None or time.monotonic() < end):
        current = context.Value("q", seed)
        counts = context.Array("q", 3)
        child = context.Process(target=work, args=(name, seed, last, end, current, counts, guarded))
        os.environ |= kernels  # which its imports read
        child.start()
        child.join()
        for variable in kernels:
            del os.environ[variable]
        for key, value in zip(found, counts, strict=True):
            found[key] += value
        if child.exitcode == 0:
            break
        found["failures"] += 1
        seed = current.value + 1
        print(f"{RULE}\n# {name}, seed {seed - 1}: crashed or hung, exit code {child.exitcode}")
        if name != "faults":
            print(importlib.import_module(f"{__package__}.{name}").make(seed - 1).script("crash"))
    return found


def work(
    name: str,
    seed: int,
    last: int | None,
    end: float | None,
    current: Any,
    counts: Any,
    guarded: bool,
) -> None:
    """The seeds from one on, until the last or the end of the time."""
    faulthandler.enable()
    if guarded:
        guard.install()
    torch.set_num_threads(1)
    while (last is None or seed < last) and (end is None or time.monotonic() < end):
        current.value = seed
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        report = faults.attempt(seed) if name == "faults" else differ(name, seed)
        counts[0] += 1
        counts[1] += report == UNDECIDED
        if report not in ("", UNDECIDED):
            counts[2] += 1
            print(f"{RULE}\n{report}", flush=True)
        seed += 1
    faulthandler.cancel_dump_traceback_later()


def differ(name: str, seed: int) -> str:
    """A script that shows how a case fails, shrunk; "" if it does not fail."""
    module = importlib.import_module(f"{__package__}.{name}")
    case, verdict = module.make(seed), getattr(module, "verdict", judged)
    wrong = verdict(case)
    if wrong in ("", UNDECIDED):
        return wrong
    refused = wrong.startswith("refused")

    def fails(smaller: Case) -> bool:
        again = verdict(smaller)
        return again not in ("", UNDECIDED) and again.startswith("refused") == refused

    case = shrink(case, fails)
    wrong = verdict(case)
    return UNDECIDED if known(case, wrong) else case.script(wrong)
