"""Starting a program several times, and ending all of it when one of its processes fails.

Note [launcher waits]
The launcher waits for events of its server, of which the keepers and the processes tell it, and for
mpiexec. It is woken by every event, and looks at mpiexec every `_LOOK` seconds. After the first
failure the others have `GRACE` seconds to raise their own errors; then "stop" makes the keepers
kill what is left, and mpiexec is killed if it does not end.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import ArgumentError, UnsupportedError
from . import protocol, wire
from .watch import ADDRESS

GRACE = float(os.environ.get("UNDERTOW_GRACE", "3"))  # seconds
_LOOK = 0.2


@dataclass
class Plan:
    """What is to be started, and how often."""

    command: list[str]  # of one process
    count: int
    hosts: list[str] = field(default_factory=list)
    logs: str = ""
    restarts: int = 0
    environment: dict[str, str] = field(default_factory=dict)
    run_id: str = "none"
    address: str = ""  # of this machine, for the hosts
    least: int = 0  # processes with which it goes on when some are lost; 0 for as many as before


def launch(plan: Plan) -> int:
    """Start a program several times; the exit code of the first process that failed, or 0."""
    if plan.count < 1:
        raise ArgumentError(f"[run] expects at least one process, got -n {plan.count}")
    if not wire.is_installed():
        raise UnsupportedError(
            "[run] several processes need MPI, and mpi4py is not installed; "
            "pip install undertow[mpi]"
        )
    for attempt in range(plan.restarts + 1):
        made = _Attempt(plan, attempt)
        code = made.run()
        if code in (0, 130):
            return code
        if attempt < plan.restarts:
            if plan.least and made.lost:
                plan = without(plan, made.lost)
                if plan.count < plan.least:
                    _say(f"{plan.count} processes would be left, and --elastic wants {plan.least}")
                    return code
                _say(f"going on with {plan.count} processes")
            _say(f"restarting, {plan.restarts - attempt} restarts left")
    return code


def without(plan: Plan, lost: set[int]) -> Plan:
    """The plan without processes that were lost; of several hosts, without theirs."""
    if not plan.hosts:
        return replace(plan, count=plan.count - len(lost))
    each = plan.count // len(plan.hosts)
    hosts = [h for i, h in enumerate(plan.hosts) if not lost & {*range(i * each, (i + 1) * each)}]
    return replace(plan, count=each * len(hosts), hosts=hosts)


def mpiexec() -> str:
    """The program that starts processes of MPI: beside this Python, or on the path."""
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec") or shutil.which("mpirun")
    if found is None:
        raise UnsupportedError(
            "[run] there is no mpiexec beside this Python or on the path; pip install undertow[mpi]"
        )
    return found


class _Attempt:
    """One start of all processes."""

    def __init__(self, plan: Plan, number: int) -> None:
        self.plan = plan
        self.server = protocol.Server("" if plan.hosts else "127.0.0.1")
        host = plan.address or protocol.address() if plan.hosts else "127.0.0.1"
        logs = os.path.abspath(os.path.join(plan.logs, f"attempt_{number}")) if plan.logs else ""
        own = {
            ADDRESS: f"{host}:{self.server.port}",
            "MASTER_ADDR": host,
            "MASTER_PORT": str(_free_port()),
            "TORCHELASTIC_RUN_ID": plan.run_id,
            "TORCHELASTIC_RESTART_COUNT": str(number),
            "TORCHELASTIC_MAX_RESTARTS": str(plan.restarts),
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
            **({"UNDERTOW_LOGS": logs} if logs else {}),
            **plan.environment,
        }
        if "UNDERTOW_NUM_THREADS" not in os.environ:
            share = max(1, (os.cpu_count() or 1) // plan.count) if not plan.hosts else 1
            own["UNDERTOW_NUM_THREADS"] = str(share)
        self.logs = logs
        keeper = Path(__file__).with_name("keeper.py")
        command = [
            *(mpiexec(), *_options(plan, own)),
            *(sys.executable, str(keeper), *plan.command),
        ]
        self.process = subprocess.Popen(
            command, env={**os.environ, **own}, start_new_session=True, stdin=subprocess.DEVNULL
        )
        self.ended: dict[int, int] = {}
        self.failure: tuple[str, int, str] | None = None
        self.left: list[int] = []  # who ended before, in peace or by sys.exit
        self.lost: set[int] = set()  # whom the program could not have helped
        self.joined: set[int] = set()  # who has called init_process_group
        self.code = 0

    def run(self) -> int:
        """Wait for the end; see Note [launcher waits]."""
        told, deadline = 0, float("inf")
        before = signal.signal(signal.SIGTERM, _terminated)
        try:
            while self.process.poll() is None and len(self.ended) < self.plan.count:
                try:
                    told = self._hear(told)
                except KeyboardInterrupt:
                    self.server.report("signal", -1, str(int(signal.SIGINT)))
                    self.code = 130
                    deadline = min(deadline, time.monotonic() + GRACE)
                if self.failure is not None:
                    deadline = min(deadline, time.monotonic() + GRACE)
                if time.monotonic() > deadline:
                    break
            self._hear(told)
            if self.failure is not None:  # who has not ended by now is stopped, or out of reach
                self.lost |= set(range(self.plan.count)) - self.ended.keys()
        finally:
            signal.signal(signal.SIGTERM, before)
            self._stop()
        if self.failure is not None and self.code == 0:
            guilty = (("failed", rank, "") for rank in self.left if self.ended.get(rank))
            kind, rank, text = next(guilty, self.failure)
            self.code = self.ended.get(rank, 1) or 1
            self.code = 128 - self.code if self.code < 0 else self.code
            became = {
                "lost": f"was lost: {text}".rstrip(": "),
                "early": "ended before init_process_group, where others wait for it",
            }
            _say(f"rank {rank} {became.get(kind, 'failed')}")
            self._show_log(rank)
        return self.code or (self.process.returncode or 0 if not self.ended else 0)

    def _hear(self, told: int) -> int:
        with self.server.changed:
            if len(self.server.events) == told:
                self.server.changed.wait(_LOOK)
            events = self.server.events[told:]
        for kind, rank, text in events:
            if kind == "ended":
                self.ended[rank] = int(text)
            elif kind == "left":
                self.left.append(rank)
            elif kind == "joins":
                self.joined.add(rank)
            elif kind in ("failed", "lost"):
                if kind == "lost" and text:  # its keeper knows the signal
                    self.lost.add(rank)
                if self.failure is None:
                    self.failure = (kind, rank, text)
        early = sorted(self.ended.keys() - self.joined)
        if self.joined and early and self.failure is None:
            self.failure = ("early", early[0], "")
        return told + len(events)

    def _stop(self) -> None:
        """End everything that is left."""
        try:
            self.process.wait(10.0 if self.failure is None and not self.code else _LOOK)
        except subprocess.TimeoutExpired:  # it has nothing to say that we do not know
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.server.report("stop", -1)
        time.sleep(0.05)
        self.server.close()  # who has not heard it sees the connection break

    def _show_log(self, rank: int) -> None:
        place = Path(self.logs, str(rank), "stderr.log") if self.logs else None
        if place is not None and place.exists():
            sys.stderr.write(place.read_text(errors="replace")[-4000:])


def _options(plan: Plan, environment: dict[str, str]) -> list[str]:
    """What this mpiexec must be told: the two families have other words."""
    asked = [mpiexec(), "--version"]
    said = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    options = ["-n", str(plan.count)]
    each = plan.count // max(1, len(plan.hosts))
    places = ",".join(f"{host}:{each}" for host in plan.hosts)
    if "Open MPI" in said or "OpenRTE" in said or "PRRTE" in said:
        options += ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            options.append("--allow-run-as-root")
        for name in (*environment, "PYTHONPATH", "PATH"):
            options += ["-x", name]
        return options + (["--host", places] if places else [])
    return options + (["-hosts", places] if places else [])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def _terminated(*_: object) -> None:
    raise KeyboardInterrupt


def _say(line: str) -> None:
    print(f"undertow: {line}", file=sys.stderr, flush=True)


def program(words: Sequence[str]) -> list[str]:
    """The command of one process, for a script or `-m module` and its arguments."""
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return [sys.executable, *flags, *words]
