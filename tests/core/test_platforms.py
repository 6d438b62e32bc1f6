"""What macOS and Windows do not have: on Linux without it, the library runs all the same.

This is no proof that it runs there, where it was never tried; it shows that each fall-back works.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import undertow as ut
from undertow.utils.data._utils import interrupts

# Before the library is imported, and after what of Python and NumPy asks for the system.
_BEFORE = """
import builtins, ctypes, functools, json, mmap, multiprocessing.connection, os, platform, signal
import socket, subprocess, sys, sysconfig, tempfile, threading, time, types, warnings
import asyncio, tqdm.auto
import numpy as np
import llvmlite.binding
libc = ctypes.CDLL(None)
sysconfig.get_config_vars()
absent = {name}
for module, names in absent.items():
    for name in names.split():
        if hasattr(sys.modules[module], name):
            delattr(sys.modules[module], name)
def without_proc(call):
    @functools.wraps(call)
    def called(path=".", *given, **more):
        if str(path).startswith(("/proc", "/sys")):
            raise FileNotFoundError(path)
        return call(path, *given, **more)
    return called
for module, name in ((builtins, "open"), (os, "open"), (os, "listdir"), (os.path, "isdir")):
    setattr(module, name, without_proc(getattr(module, name)))
used = []
"""
_DARWIN = """
sys.platform = "darwin"
platform.machine = lambda: "arm64-like"
"""
_WINDOWS = """
sys.platform = "win32"
platform.machine = lambda: "AMD64"
os.supports_dir_fd = set()
sys.modules["fcntl"] = None
class Only(ctypes.CDLL):
    def __init__(self, name, *given, **more):
        if name is None:
            raise TypeError("argument of type 'NoneType' is not iterable")  # as on Windows
        super().__init__(name, *given, **more)
ctypes.CDLL = Only
def library(**functions):
    return types.SimpleNamespace(**functions)
# Of milliseconds and of nothing, as there; in C, since the pool calls them as such.
nap = libc.usleep
ctypes.windll = library(kernel32=library(Sleep=nap, SwitchToThread=libc.sched_yield))
"""
_POSIX_ONLY = {
    "os": "fork register_at_fork sched_getaffinity memfd_create writev fchmod O_TMPFILE O_CLOEXEC "
    "O_NOFOLLOW O_NONBLOCK getuid killpg sysconf posix_fallocate",
    "signal": "SIGKILL SIGUSR1 SIGALRM setitimer pthread_sigmask",
    "mmap": "MAP_PRIVATE MAP_SHARED MAP_ANONYMOUS MAP_POPULATE MADV_HUGEPAGE",
    "socket": "send_fds recv_fds AF_UNIX",
}
_LINUX_ONLY = {
    "os": "sched_getaffinity memfd_create O_TMPFILE posix_fallocate",
    "mmap": "MAP_POPULATE MADV_HUGEPAGE",
}
_PROGRAM = """
import undertow as ut
from undertow.backends import memory
from undertow.backends.cpu.threads import pool, pool_code
from undertow.cli import main
ut.manual_seed(0)
ut.set_num_threads(2)
a = np.random.default_rng(0).standard_normal((400, 300), np.float32)
product = (ut.from_numpy(a) @ ut.from_numpy(a.T.copy())).numpy()
np.testing.assert_allclose(product, a @ a.T, rtol=1e-3, atol=1e-3)
large = ut.from_numpy(np.linspace(-1, 1, 1 << 20, dtype=np.float32))
np.testing.assert_allclose(large.exp().numpy(), np.exp(large.numpy()), rtol=1e-5)
assert pool._handles.get(2), "the pool was not asked"
model = ut.nn.Sequential(ut.nn.Linear(8, 16), ut.nn.ReLU(), ut.nn.Linear(16, 1))
optimizer = ut.optim.SGD(model.parameters(), lr=1e-3)
x = ut.ones(16, 8)
@ut.compile
def step():
    optimizer.zero_grad()
    loss = (model(x) - 1).square().mean()
    loss.backward(workers=2)
    optimizer.step()
    return loss
losses = [step().item() for _ in range(6)]
assert losses == sorted(losses, reverse=True) and losses[0] > losses[-1], losses
with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "model")
    ut.save(model.state_dict(), file)
    ut.save(model.state_dict(), file)
    for more in ({}, {"mmap": True}):
        found = ut.load(file, **more)
        assert all((found[k] == v).all() for k, v in model.state_dict().items())
    del found
with ut.profiler.profile() as profile:
    model(x)
assert profile.key_averages().table()
loader = ut.utils.data.DataLoader(list(range(4)), batch_size=2)
assert [b.tolist() for b in loader] == [[0, 1], [2, 3]]
assert main(["info", "--json"]) == 0
"""


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_without_what_other_systems_lack(system: str, tmp_path: Path) -> None:
    windows = system == "win32"
    absent = _POSIX_ONLY if windows else _LINUX_ONLY
    script = _BEFORE.replace("{name}", repr(absent)) + (_WINDOWS if windows else _DARWIN) + _PROGRAM
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        env={"PATH": "", "UNDERTOW_CACHE_DIR": str(tmp_path), "LOCALAPPDATA": str(tmp_path)},
    )
    assert not done.returncode, done.stderr
    assert '"native calls": "yes"' in done.stdout
    assert list(tmp_path.rglob("*.kernel")), "no kernel was kept on disk"


def test_a_file_store_needs_locks_of_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stores = pytest.importorskip("undertow.distributed.stores")
    monkeypatch.setattr(stores, "find_spec", lambda name: None)
    with pytest.raises(ut.errors.UnsupportedError, match="TCPStore"):
        stores.FileStore(str(tmp_path / "file"))


def test_a_late_interrupt_without_signals_to_oneself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows' `kill` would end the process."""
    monkeypatch.setattr(interrupts.sys, "platform", "win32")
    monkeypatch.setattr(interrupts.os, "kill", lambda *_: pytest.fail("kill"))
    with interrupts.late_interrupts(0.2):
        signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        time.sleep(60)
