"""What MPI starts for a process of the program: it starts that, and tells how it ended.

Launchers of MPI end every process at once when one dies, so that the others could not say what they
were waiting for. This one dies last. It runs as a file, with Python's library alone.

Note [keepers]
Who waits here, and who wakes them:
  - for the program: its end, of whatever kind, since this is its parent;
  - for the launcher's word, after the program has failed: "stop", or the end of the connection;
  - a thread listens to the launcher all the time: on "stop" it kills the program, and this process
    ends. If the launcher is gone, or the link to it, the program has `GRACE` seconds to say so.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Any

if __name__ == "__main__":
    import protocol  # type: ignore[import-not-found]  # beside this file
else:
    from . import protocol

GRACE = 3.0
_RANK = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID")
_SIZE = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS")
_LOCAL_RANK = ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID")
_LOCAL_SIZE = ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE")


def _first(names: tuple[str, ...], default: str) -> str:
    return next((os.environ[n] for n in names if n in os.environ), default)


def environment() -> dict[str, str]:
    """The variables by which torchrun tells a process who it is."""
    rank, size = _first(_RANK, "0"), _first(_SIZE, "1")
    local, here = _first(_LOCAL_RANK, rank), _first(_LOCAL_SIZE, size)
    machine = str(int(rank) // max(1, int(here)))
    return {
        "RANK": rank,
        "WORLD_SIZE": size,
        "LOCAL_RANK": local,
        "LOCAL_WORLD_SIZE": here,
        "GROUP_RANK": machine,
        "GROUP_WORLD_SIZE": str(max(1, int(size) // max(1, int(here)))),
        "ROLE_RANK": rank,
        "ROLE_WORLD_SIZE": size,
        "ROLE_NAME": "default",
    }


class Keeper:
    """One process of the program."""

    def __init__(self, command: list[str]) -> None:
        self.about = environment()
        self.rank = self.about["RANK"]
        where = protocol.parsed(os.environ["UNDERTOW_WATCH"])
        self.launcher = protocol.Client(*where)
        self.news = protocol.connect(*where, 30.0)
        protocol.send(self.news, b"subscribe")
        self.over = threading.Event()
        output = self._output()
        self.child = subprocess.Popen(
            command, env={**os.environ, **self.about}, close_fds=False, **output
        )
        threading.Thread(target=self._listen, daemon=True).start()

    def _output(self) -> dict[str, Any]:
        folder = os.environ.get("UNDERTOW_LOGS")
        if not folder:
            return {}
        place = os.path.join(folder, self.rank)
        os.makedirs(place, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        return {n: os.open(os.path.join(place, f"{n}.log"), flags) for n in ("stdout", "stderr")}

    def _listen(self) -> None:
        try:
            while True:
                kind, _, text = protocol.receive(self.news)
                if kind == b"signal":
                    self.child.send_signal(int(text))
                elif kind == b"stop":
                    break
        except (OSError, ConnectionError):
            with suppress(subprocess.TimeoutExpired):
                self.child.wait(GRACE)
        if self.child.poll() is None:
            self.child.kill()
        self.over.set()

    def run(self) -> int:
        """Wait for the program, and tell the launcher how it ended."""
        code = self.child.wait()
        kind, text = b"ended", str(code)
        try:
            if code < 0:
                self.launcher.ask(b"report", b"lost", self.rank.encode(), _name(-code).encode())
            elif code > 0:
                words = f"its program ended with exit code {code}"
                self.launcher.ask(b"report", b"failed", self.rank.encode(), words.encode())
            self.launcher.ask(b"report", kind, self.rank.encode(), text.encode())
        except (OSError, ConnectionError):
            return 1
        if code:
            self.over.wait()
        return 0


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


if __name__ == "__main__":
    sys.path.pop(0)  # this folder, where others have names of Python's modules
    for _number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGUSR1", signal.SIGTERM)):
        # The launcher decides. A handler, since a child would inherit that a signal is ignored.
        signal.signal(_number, lambda *_: None)
    sys.exit(Keeper(sys.argv[1:]).run())
