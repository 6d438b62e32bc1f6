"""Kernels from LLVM IR to machine code: the caches in memory and on disk, and debugging."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.backends.cpu.codegen import cache, jit
from undertow.backends.cpu.codegen.cache import Disk

posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs users and permissions")
root = pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="only root gives away")

# `%name` and `%number` are filled in; the table and the helper have the same names in all modules.
TEXT = """
@table = constant [2 x i64] [i64 %number, i64 0]

define i64 @helper(i64 %x) noinline {
  %p = getelementptr i64, ptr @table, i64 %x
  %y = load volatile i64, ptr %p
  ret i64 %y
}

define i64 @%name() {
  %y = call i64 @helper(i64 0)
  ret i64 %y
}
"""

# A program that asks for kernels 0, 1, 2, … and prints what they return.
PROGRAM = """
import ctypes, sys
from undertow.backends.cpu.codegen import jit
TEXT = {text!r}
for number in range({count}):
    text = TEXT.replace("%number", str(number)).replace("%name", "constant")
    address = jit.load("constant", text, why=f"it is number {{number}}", source="loop;")
    print(ctypes.CFUNCTYPE(ctypes.c_int64)(address)(), end=" ")
"""


def constant(name: str, number: int) -> str:
    return TEXT.replace("%number", str(number)).replace("%name", name)


def result(address: int) -> int:
    return ctypes.CFUNCTYPE(ctypes.c_int64)(address)()


def start(folder: Path, code: str = "", count: int = 3, **env: str) -> subprocess.Popen[str]:
    """Begin a program that uses kernels, with its cache in `folder`."""
    settings = {
        "UNDERTOW_CACHE_DIR": str(folder),
        "UNDERTOW_DEBUG": "kernels",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    return subprocess.Popen(
        [sys.executable, "-c", code or PROGRAM.format(text=TEXT, count=count)],
        env={**os.environ, **settings, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What it printed, after it ended well."""
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out, err


def run(folder: Path, code: str = "", count: int = 3, **env: str) -> str:
    """Run the program that checks its kernels; what it said about them."""
    out, err = finish(start(folder, code, count, **env))
    if not code:
        assert out.split() == [str(i) for i in range(count)]
    return err


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.kernel")) if folder.is_dir() else []


KEYS = [f"{i:064x}" for i in range(100)]


# Memory ------------------------------------------------------------------------------------------


def test_kernels_of_one_name_do_not_mix() -> None:
    """Neither the exported functions nor what else their modules define."""
    addresses = [jit.load("test_mix", constant("test_mix", i)) for i in range(5)]
    assert [result(a) for a in addresses] == list(range(5))
    assert len(set(addresses)) == 5
    assert jit.load("test_mix", constant("test_mix", 3)) == addresses[3]


def test_any_function_of_a_module() -> None:
    """Also one that the text makes internal."""
    text = "define internal i64 @f() { ret i64 1 } define i64 @g() { ret i64 2 }"
    assert (result(jit.load("f", text)), result(jit.load("g", text))) == (1, 2)


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("bad", "define i64 @bad() { ret i32 1 }", "kernel bad is not valid"),
        ("bad", "define i64 @other() { ret i64 1 }", "kernel bad is not valid"),
        ("bad", "declare i64 @bad()", "only declares it"),
        (
            "lost",
            "declare i64 @no_such_thing() define i64 @lost() { %x = call i64 @no_such_thing() "
            "ret i64 %x }",
            "kernel lost calls no_such_thing",
        ),
    ],
)
def test_errors_name_the_kernel(name: str, text: str, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        jit.load(name, text)


def test_functions_of_the_c_library() -> None:
    text = "declare i64 @labs(i64) define i64 @outside() { %x = call i64 @labs(i64 -7) ret i64 %x }"
    assert result(jit.load("outside", text)) == 7


def test_one_compilation_for_several_threads() -> None:
    made: list[int] = []
    found: list[int] = []
    begin = threading.Barrier(8)
    name = f"test_once_{time.time_ns()}"

    def make() -> tuple[str, str]:
        made.append(1)
        time.sleep(0.02)
        return constant("test_once", 8), ""

    def ask() -> None:
        begin.wait()
        found.append(jit.lookup("test_once", name, make)[0])

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert len(found) == 8
    assert len(set(found)) == 1
    assert result(found[0]) == 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_while_compiling(tmp_path: Path) -> None:
    """A child compiles, whatever other threads were doing when it was forked."""
    run(
        tmp_path,
        f"""
import ctypes, os, threading
from undertow.backends.cpu.codegen import jit
TEXT = {TEXT!r}
def load(number):
    text = TEXT.replace("%number", str(number)).replace("%name", "constant")
    return ctypes.CFUNCTYPE(ctypes.c_int64)(jit.load("constant", text))()
load(0)
stop = False
def use():
    number = 1
    while not stop:
        assert load(number) == number
        number += 1
thread = threading.Thread(target=use)
thread.start()
for turn in range(10):
    pid = os.fork()
    if not pid:
        os._exit(load(-turn) != -turn)
    assert os.waitpid(pid, 0)[1] == 0
stop = True
thread.join()
""",
        UNDERTOW_DEBUG="",
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_while_importing(tmp_path: Path) -> None:
    """The lock of a module that another thread was importing would stay locked in the child."""
    run(
        tmp_path,
        f"""
import os, signal, sys, threading, time
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "llvmlite.binding":
            begun.set()
            time.sleep(0.3)
begun = threading.Event()
sys.meta_path.insert(0, Slow())
from undertow.backends.cpu.codegen import jit
load = lambda: jit.load("constant", {constant("constant", 1)!r})
thread = threading.Thread(target=load)
thread.start()
assert begun.wait(60)
pid = os.fork()
if not pid:
    signal.alarm(30)
    os._exit(load() == 0)
assert os.waitpid(pid, 0)[1] == 0
thread.join()
""",
        UNDERTOW_DEBUG="",
    )


# Keys --------------------------------------------------------------------------------------------


def test_key_counts_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    def key() -> str:
        jit._circumstances.cache_clear()
        return jit._key("text", "name", "ir")

    keys = [key(), jit._key("text", "name", "ir2"), jit._key("text", "name2", "ir")]
    keys += [jit._key("key", "name", "ir"), jit._key("text", "nam", "eir")]
    changes: list[tuple[Any, str, Any]] = [
        (jit, "_made", jit._tools()._replace(**{field: "another"}))
        for field in ("versions", "triple", "cpu", "features")
    ]
    changes += [(jit, "LEVEL", 1), (ut, "__version__", "0.0.0")]
    changes += [(jit, "_here", Path(cache.__file__))]  # as if this file had changed
    for where, what, value in changes:
        with monkeypatch.context() as patch:
            patch.setattr(where, what, value)
            keys.append(key())
    assert len(set(keys)) == len(keys)
    assert key() == keys[0]


def test_features_can_be_taken_away(tmp_path: Path) -> None:
    """Code for other features is another entry, and dependent features go as well."""
    base = next((f for f in ("avx512f", "avx2", "neon") if f in jit.features()), None)
    if base is None:
        pytest.skip("a plain processor")
    code = f"""
from undertow.backends.cpu.codegen import jit
assert {base!r} not in jit.features()
assert {base!r} != "avx512f" or not any(f.startswith("avx512") for f in jit.features())
assert len(jit.features()) > 1
"""
    run(tmp_path, code, UNDERTOW_CPU_FEATURES=f"-{base}")
    assert "avx512f" not in run(tmp_path)
    assert run(tmp_path, UNDERTOW_CPU_FEATURES=f"-{base}").count("compiled") == 3
    assert run(tmp_path, UNDERTOW_CPU_FEATURES=f"-{base}").count("from disk") == 3
    assert len(entries(tmp_path)) == 6


@pytest.mark.parametrize("features", ["-avx", "baseline"])
def test_features_taken_away_are_not_used(tmp_path: Path, features: str) -> None:
    """LLVM switches a feature on again if one that needs it, such as vaes, is left."""
    if "sse2" not in jit.features():
        pytest.skip("not x86")
    code = """
import sys
from undertow.backends.cpu.codegen import jit, kernels
tools = jit._tools()
text = "define <8 x float> @f(<8 x float> %x) { %y = fadd <8 x float> %x, %x ret <8 x float> %y }"
print(tools.machine.emit_assembly(tools.llvm.parse_assembly(text)), file=sys.stderr)
assert kernels.machine() == kernels.Machine(16, False, False)
"""
    assembly = run(tmp_path, code, UNDERTOW_CPU_FEATURES=features)
    assert "\taddps" in assembly
    assert "ymm" not in assembly


def test_lookup_makes_no_text_twice(tmp_path: Path) -> None:
    code = f"""
import ctypes
from undertow.backends.cpu.codegen import jit
jit._sources = lambda: "first"
def make():
    print("made")
    return {constant("looked_up", 5)!r}, "a note"
for key in ("a", "b", "a"):
    address, note = jit.lookup("looked_up", key, make)
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(address)() == 5 and note == "a note"
"""
    assert finish(start(tmp_path, code))[0] == "made\nmade\n"
    assert finish(start(tmp_path, code))[0] == ""
    # Other sources, then sources that may have changed since they were imported.
    assert finish(start(tmp_path, code.replace('"first"', '"second"')))[0] == "made\nmade\n"
    assert finish(start(tmp_path, code.replace('"first"', "None")))[0] == "made\nmade\nmade\n"


def test_sources_count_as_imported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Their content counts; one that has changed after the import, or just before, counts out."""
    package = tmp_path / "undertow"
    here = package / "backends" / "cpu" / "codegen" / "jit.py"
    other = package / "kernel" / "expr.py"
    for file in (here, other):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("1")
        os.utime(file, (1000.0, 1000.0))
    monkeypatch.setattr(jit, "_here", here)

    def sources(imported: float = 2000.0) -> str | None:
        jit._sources.cache_clear()
        monkeypatch.setattr(jit, "IMPORTED", imported)
        return jit._sources()

    monkeypatch.setattr(jit, "_imported", jit._generators())
    first = sources()
    assert first
    assert sources(1000.5) is None
    other.write_text("2")
    os.utime(other, (1000.5, 1000.5))
    assert sources() is None
    monkeypatch.setattr(jit, "_imported", jit._generators())
    second = sources()
    assert second
    assert second != first
    other.unlink()
    assert sources() is None
    jit._sources.cache_clear()


# Disk --------------------------------------------------------------------------------------------


def test_second_process_compiles_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "cache"
    first, second = run(folder), run(folder)
    assert (first.count("compiled"), first.count("from disk")) == (3, 0)
    assert (second.count("compiled"), second.count("from disk")) == (0, 3)
    assert len(entries(folder)) == 3
    assert len(list(folder.iterdir())) == 3


@posix
def test_only_the_user_may_enter(tmp_path: Path) -> None:
    """Whatever the umask says."""
    folder = tmp_path / "cache"
    before = os.umask(0)
    try:
        run(folder)
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {entry.stat().st_mode & 0o777 for entry in entries(folder)} == {0o600}


def test_default_directory(tmp_path: Path) -> None:
    base = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME"
    run(tmp_path, UNDERTOW_CACHE_DIR="", **{base: str(tmp_path / "xdg")})
    assert len(entries(tmp_path / "xdg" / "undertow")) == 3
    if sys.platform != "win32":
        run(tmp_path, UNDERTOW_CACHE_DIR="", HOME=str(tmp_path / "home"), **{base: "not/absolute"})
        assert len(entries(tmp_path / "home" / ".cache" / "undertow")) == 3


def test_switched_off(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    for _ in range(2):
        assert run(folder, UNDERTOW_CACHE="0").count("compiled") == 3
    assert not folder.exists()


@pytest.mark.parametrize("variable", ["UNDERTOW_CACHE", "UNDERTOW_CACHE_SIZE"])
def test_settings_are_numbers(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "many")
    with pytest.raises(ut.errors.ArgumentError, match=f"{variable} must be a number.*'many'"):
        cache.from_environment()


def refused(folder: Path) -> str:
    """The one warning of a process that must not use this directory."""
    err = run(folder)
    assert err.count("compiled") == 3
    assert err.count("UserWarning") == 1
    assert entries(folder) == []
    return err


@posix
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o1777])
def test_directory_that_others_can_write(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(mode)
    err = refused(folder)
    assert f"{folder} can be written by other users (take that away by chmod go-w)" in err
    assert "UNDERTOW_CACHE_DIR" in err
    assert "UNDERTOW_CACHE=0" in err


@posix
@root
def test_directory_of_another_user(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir(0o700)
    os.chown(folder, 12345, 12345)
    assert f"{folder} belongs to user 12345" in refused(folder)


@posix
def test_symbolic_link(tmp_path: Path) -> None:
    """One of ours is followed, and what it points to must be trustworthy."""
    folder, link = tmp_path / "cache", tmp_path / "link"
    folder.mkdir(0o700)
    link.symlink_to(folder)
    run(link)
    assert len(entries(folder)) == 3
    for entry in entries(folder):
        entry.unlink()
    folder.chmod(0o777)
    assert "can be written" in refused(link)


@posix
@root
def test_symbolic_link_of_another_user(tmp_path: Path) -> None:
    folder, link = tmp_path / "cache", tmp_path / "link"
    folder.mkdir(0o700)
    link.symlink_to(folder)
    os.lchown(link, 12345, 12345)
    assert "belongs to user 12345" in refused(link)


@posix
def test_entry_that_others_can_write(tmp_path: Path) -> None:
    run(tmp_path / "cache")
    for entry in entries(tmp_path / "cache"):
        entry.chmod(0o622)
    err = run(tmp_path / "cache")
    assert err.count("compiled") == 3
    assert err.count("UserWarning") == 1
    assert "can be written by other users" in err
    assert run(tmp_path / "cache").count("from disk") == 3  # they were replaced


def damaged(content: bytes) -> list[bytes]:
    flipped = bytearray(content)
    flipped[-1] ^= 1
    header = bytearray(content)
    header[0] ^= 1
    return [
        b"",
        content[:10],
        content[:-1],
        content[:40],
        bytes(flipped),
        bytes(header),
        content + b"\0",
        b"\x7fELF" + content,
    ]


def test_damaged_entries(tmp_path: Path) -> None:
    """A checksum over key and content tells every damage and every exchange."""
    disk = Disk(tmp_path)
    disk.put(KEYS[0], b"some code")
    disk.put(KEYS[1], b"other code")
    whole = (tmp_path / f"{KEYS[0]}.kernel").read_bytes()
    assert disk.get(KEYS[0]) == b"some code"
    for content in damaged(whole):
        (tmp_path / f"{KEYS[0]}.kernel").write_bytes(content)
        assert disk.get(KEYS[0]) is None
    (tmp_path / f"{KEYS[1]}.kernel").write_bytes(whole)
    assert disk.get(KEYS[1]) is None  # renamed
    disk.put(KEYS[1], b"other code")
    assert disk.get(KEYS[1]) == b"other code"


def test_damaged_entries_are_rebuilt(tmp_path: Path) -> None:
    run(tmp_path)
    for entry, content in zip(entries(tmp_path), (b"", b"nonsense", None), strict=True):
        entry.write_bytes(entry.read_bytes()[:-7] if content is None else content)
    assert run(tmp_path).count("compiled") == 3
    assert run(tmp_path).count("from disk") == 3


@posix
def test_entry_that_is_no_file(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.put(KEYS[0], b"code")
    os.mkfifo(tmp_path / f"{KEYS[1]}.kernel", 0o600)
    (tmp_path / f"{KEYS[2]}.kernel").symlink_to(tmp_path / f"{KEYS[0]}.kernel")
    (tmp_path / f"{KEYS[3]}.kernel").mkdir(0o700)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert [disk.get(key) for key in KEYS[:5]] == [b"code", None, None, None, None]
    assert len(caught) <= 1


def test_several_processes_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    processes = [start(folder, count=10) for _ in range(4)]
    for process in processes:
        assert finish(process)[0].split() == [str(i) for i in range(10)]
    assert len(entries(folder)) == 10
    assert len(list(folder.iterdir())) == 10
    assert run(folder, count=10).count("from disk") == 10


def test_size_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was used last stays; nothing else in the directory is touched."""
    monkeypatch.setattr(cache, "_EVERY", 1)
    disk = Disk(tmp_path, megabytes=1)
    other, fresh = tmp_path / "notes.txt", tmp_path / f"{KEYS[98]}.00000000.new"
    stale = tmp_path / f"{KEYS[99]}.00000000.new"
    for file in (other, fresh, stale):
        file.write_bytes(b"x" * (2 << 20))
    past = time.time() - 100_000
    os.utime(other, (past, past))
    os.utime(stale, (past, past))
    for age, key in enumerate(KEYS[:20]):
        disk.put(key, bytes([age]) * 100_000)
        os.utime(tmp_path / f"{key}.kernel", (past + age, past + age))
        assert disk.get(KEYS[0]) is not None  # each use is noted, so this one is the newest
    kept = {entry.stem for entry in entries(tmp_path)}
    assert sum(entry.stat().st_size for entry in entries(tmp_path)) <= 1 << 20
    assert kept == {KEYS[0], *KEYS[11:20]}
    assert other.exists()
    assert fresh.exists()
    assert not stale.exists()


def test_limit_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNDERTOW_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("UNDERTOW_CACHE_SIZE", "7")
    disk, where = cache.from_environment()
    assert disk is not None
    assert disk.limit == 7 << 20
    assert where == str(tmp_path)


def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writing fails once, quietly, leaves nothing behind, and is not tried again."""
    disk = Disk(tmp_path)
    disk.put(KEYS[0], b"code")
    tries = []

    def full(*args: Any, **kwargs: Any) -> None:
        tries.append(args)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    for key in KEYS[1:4]:
        disk.put(key, b"more")
    assert len(tries) == 1
    assert len(list(tmp_path.iterdir())) == 1
    assert disk.get(KEYS[0]) == b"code"


@pytest.mark.parametrize("place", ["file", "file/below", "gone"])
def test_no_such_directory(tmp_path: Path, place: str) -> None:
    """Computations go on where nothing can be kept, without a warning."""
    (tmp_path / "file").write_bytes(b"")
    if place == "gone":
        code = PROGRAM.format(text=TEXT, count=3).replace(
            "for number",
            f"jit.target(); import os; os.rmdir({str(tmp_path / place)!r})\nfor number",
        )
        err = finish(start(tmp_path / place, code))[1]
    else:
        err = run(tmp_path / place)
    assert err.count("compiled") == 3
    assert "Warning" not in err


@posix
@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() == 0, reason="root may write anywhere")
def test_read_only_directory(tmp_path: Path) -> None:
    run(tmp_path, count=2)
    tmp_path.chmod(0o500)
    err = run(tmp_path, count=3)
    assert (err.count("from disk"), err.count("compiled")) == (2, 1)
    tmp_path.chmod(0o700)


# Debugging ---------------------------------------------------------------------------------------


def test_debug_kernels(tmp_path: Path) -> None:
    """One line each: where it came from, how long it took, its size and the caller's reason."""
    for origin in ("compiled", "from disk"):
        lines = run(tmp_path, count=1).splitlines()
        assert lines[0] == f"undertow: kernel cache on disk: {tmp_path}"
        assert lines[1].startswith(f"undertow: constant {origin}, ")
        assert lines[1].endswith(" bytes: it is number 0")
        assert " ms, " in lines[1]
        assert len(lines) == 2
    code = PROGRAM.format(text=TEXT, count=1) + "jit.load('constant', text)"
    assert run(tmp_path, code).splitlines()[2].startswith("undertow: constant from memory, ")


def test_debug_listings(tmp_path: Path) -> None:
    """Loops, LLVM IR and assembly, also of kernels that are on the disk."""
    assert run(tmp_path, count=1, UNDERTOW_DEBUG="") == ""
    ir = run(tmp_path, count=1, UNDERTOW_DEBUG="ir")
    assert ir.startswith("// undertow loops of constant\nloop;\n; undertow ir of constant\n")
    assert constant("constant", 0).rstrip() in ir
    asm = run(tmp_path, count=1, UNDERTOW_DEBUG="asm")
    assert asm.startswith("; undertow asm of constant\n")
    assert "ret" in asm
    assert "define" not in asm
    both = run(tmp_path, count=1, UNDERTOW_DEBUG="asm, kernels")
    assert "undertow asm of" in both
    assert "undertow: constant compiled" in both


def test_debug_words(tmp_path: Path) -> None:
    process = start(tmp_path, UNDERTOW_DEBUG="ir,assembly")
    err = process.communicate(timeout=300)[1]
    assert process.returncode == 1
    assert "UNDERTOW_DEBUG may name ir, asm, kernels" in err
    assert "got 'assembly'" in err


# Addresses ---------------------------------------------------------------------------------------


def test_address() -> None:
    base = np.arange(24.0).reshape(4, 6)
    arrays = [
        base,
        base[1:, ::2],
        base.T,
        base[::-1],
        np.float32(3).reshape(()),
        np.empty(0),
        np.zeros((2, 2), "f2"),
        np.array([1 + 2j]),
        base.view(np.int64),
    ]
    for a in arrays:
        array = np.asarray(a)
        assert jit.address(array) == array.__array_interface__["data"][0]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
def test_an_interrupted_compilation_comes_to_its_end() -> None:
    """The exception of a signal handler reaches the caller at once, and nothing is left half."""

    def raised(*_: Any) -> None:
        raise InterruptedError("the handler's")

    finished = threading.Event()

    def work() -> str:
        assert threading.current_thread() is not threading.main_thread()
        time.sleep(0.3)
        finished.set()
        return "made"

    assert jit._undisturbed(work) == "made"
    finished.clear()
    before = signal.signal(signal.SIGALRM, raised)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(InterruptedError, match="the handler's"):
            jit._undisturbed(work)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert finished.wait(100)
    with pytest.raises(ZeroDivisionError):
        jit._undisturbed(lambda: 1 // 0)


def test_what_runs_at_exit_may_compile() -> None:
    """The main thread has the lock for good then, and must not wait for another one."""
    code = (
        "import atexit\n"
        "atexit.register(lambda: print(ut.ones(3000, 7).cosh().sum().item() > 0))\n"
        "import undertow as ut\n"
        "ut.ones(3000, 7).exp()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "UNDERTOW_CACHE": "0"},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert done.stdout == "True\n"
