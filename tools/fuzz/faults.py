"""Fault scenarios, each in a process of its own that must end well, and in time."""

from __future__ import annotations

import inspect
import subprocess
import sys

from . import scenarios

LIMIT = 90  # seconds; then the scenario hangs


def script(seed: int) -> str:
    """The scenario of a seed as a program."""
    scenario = scenarios.SCENARIOS[seed % len(scenarios.SCENARIOS)]
    source = inspect.getsource(scenarios).partition("\ndef raising(")[0]
    watchdog = (
        f"import faulthandler\n\nfaulthandler.dump_traceback_later({LIMIT - 10}, exit=True)\n"
    )
    return f"{source}\n{inspect.getsource(scenario)}\n\n{watchdog}{scenario.__name__}({seed})\n"


def attempt(seed: int) -> str:
    """The program and what it said, if it failed, crashed or did not end; else ""."""
    text = script(seed)
    command = [sys.executable, "-X", "faulthandler", "-W", "ignore", "-c", text]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return f"# faults, seed {seed}: hangs\n{text}"
    if done.returncode == 0:
        return ""
    said = "".join(f"# {line}\n" for line in done.stderr.splitlines()[-30:])
    return f"# faults, seed {seed}: exit code {done.returncode}\n{said}{text}"
