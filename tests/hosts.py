"""Two hosts on one machine: network namespaces with a link between them, which can be cut.

Nothing outside of the two namespaces is touched. It needs root, and Linux's `ip`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ADDRESSES = ("10.77.0.1", "10.77.0.2")  # within the namespaces
_SSH = """#!/bin/sh
# What mpiexec takes for ssh: options, a host, a command.
while case "$1" in -*) true ;; *) false ;; esac; do shift; done
case "$1" in {second}) name={names[1]} ;; *) name={names[0]} ;; esac
shift
exec ip netns exec $name sh -c "$*"
"""


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def available() -> bool:
    """Whether namespaces can be made here."""
    if not hasattr(os, "geteuid") or os.geteuid() or shutil.which("ip") is None:
        return False
    name = f"utw{os.getpid()}t"
    try:
        _ip("netns", "add", name)
        _ip("netns", "del", name)
    except subprocess.CalledProcessError:
        return False
    return True


class Hosts:
    """Two namespaces."""

    def __init__(self, folder: Path) -> None:
        self.names = tuple(f"utw{os.getpid()}{letter}" for letter in "ab")
        self.ssh = folder / "ssh"
        self.ssh.write_text(_SSH.format(second=ADDRESSES[1], names=self.names))
        self.ssh.chmod(0o755)
        self.environment = {"HYDRA_LAUNCHER_EXEC": str(self.ssh)}  # of a program that uses both

    def make(self) -> None:
        """Make the namespaces and the link."""
        for name in self.names:
            _ip("netns", "add", name)
        first, second = self.names
        ends = ["name", "wire", "netns", second]
        _ip("link", "add", "name", "wire", "netns", first, "type", "veth", "peer", *ends)
        for name, address in zip(self.names, ADDRESSES, strict=True):
            _ip("-n", name, "address", "add", f"{address}/24", "dev", "wire")
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "link", "set", "wire", "up")

    def inside(self, host: int, command: Sequence[str]) -> list[str]:
        """A command that runs on one of the hosts."""
        return ["ip", "netns", "exec", self.names[host], *command]

    def cut(self) -> None:
        """Cut the link."""
        _ip("-n", self.names[1], "link", "set", "wire", "down")

    def close(self) -> None:
        """End what runs in the namespaces, and remove them."""
        for name in self.names:
            asked = ["ip", "netns", "pids", name]
            listed = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
            if listed.split():
                subprocess.run(["kill", "-9", *listed.split()], check=False, capture_output=True)
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


@contextmanager
def two(folder: Path) -> Iterator[Hosts]:
    """Two hosts for a block."""
    made = Hosts(folder)
    try:
        made.make()
        yield made
    finally:
        made.close()
