"""LLVM IR to machine code in this process, through a cache in memory and on disk.

Note [one engine]
All kernels live in one MCJIT engine, which loads an object in 0.1 ms; an engine each takes 0.9 ms,
and ORC's LLJIT 0.2 ms and four times the memory. One engine is one namespace, so a kernel's
function is renamed to carry the kernel's key, and everything else in its module is made internal.

Note [keys]
A key is a hash over everything that the machine code depends on: what was asked for, the processor
and its features, the versions of LLVM, llvmlite and this package, and this file. `load` asks by
the LLVM IR itself. `lookup` asks by a description that the caller vouches for, so that no IR is
generated when the kernel is there; then the sources of the generators count too. They are those
that this process runs: if a file has changed since it was imported, `lookup` goes by the IR.

Note [lifetime]
Code is never freed, since threads may be running it: the engine is detached from Python's garbage
collection. All use of LLVM is under one lock, and so is its import. The lock is taken across a
fork, so that a child never starts with a half-finished compilation or a module that a thread it
does not have is importing, and at exit for good, so that no daemon thread is inside LLVM when its
libraries are torn down.

Note [interrupts]
Python runs signal handlers on the main thread, between any two instructions. An exception of theirs
inside llvmlite's own Python can leave an object that is freed twice, which ends the process. So
what the main thread wants of LLVM another thread does. The main thread waits, and whatever stops
its waiting, the other one comes to the end and keeps what it made.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import hashlib
import os
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ... import debug
from ...locks import Lock
from .. import IMPORTED
from . import cache

LEVEL = 2  # of LLVM's optimisation pipeline

T = TypeVar("T")
_lock = Lock()
_exiting = False  # whether the main thread has the lock for good
_loaded: dict[str, tuple[int, str]] = {}  # key -> address, note


class _Tools(NamedTuple):
    """What compiling and loading need, made with the first kernel."""

    llvm: Any  # llvmlite.binding
    machine: Any
    engine: Any
    disk: cache.Disk | None
    versions: str
    triple: str
    cpu: str
    features: str  # all that LLVM knows: "+avx2,-avx512f,…"
    wide: bool


_made: _Tools | None = None


def _undisturbed(work: Callable[[], T]) -> T:
    """What `work` returns, done where no signal handler runs; see Note [interrupts]."""
    if _exiting or threading.current_thread() is not threading.main_thread():
        return work()
    outcome: list[Any] = []
    done = threading.Lock()
    done.acquire()

    def run() -> None:
        try:
            outcome[:] = [work(), None]
        except BaseException as error:  # for the caller to raise
            outcome[:] = [None, error]
        finally:
            done.release()

    try:
        threading.Thread(target=run, name="undertow-compiler", daemon=True).start()
    except RuntimeError:  # there are no more threads to be had
        return work()
    done.acquire()
    result, error = outcome
    if error is not None:
        raise error
    return result


def load(
    name: str,
    text: str,
    why: str = "",
    source: str | Callable[[], str] | None = None,
    tuned: bool = False,
) -> int:
    """The address of the function `name` in a module of LLVM IR, optimised and compiled.

    Args:
        name: The function that the module exports.
        text: The LLVM IR.
        why: Why the kernel was chosen, for `UNDERTOW_DEBUG=kernels`.
        source: The loops that it was made from, for `UNDERTOW_DEBUG=ir`.
        tuned: Whether the loops are as they should be, so that a short pipeline will do.

    >>> text = "define i64 @twice(i64 %x) { %y = shl i64 %x, 1 ret i64 %y }"
    >>> ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(load("twice", text))(21)
    42
    """
    key = _key("tuned" if tuned else "text", name, text)
    return _find(name, key, lambda: (text, ""), why, source, tuned)[0]


def lookup(
    name: str,
    key: str,
    make: Callable[[], tuple[str, str]],
    why: str = "",
    source: str | Callable[[], str] | None = None,
    tuned: bool = False,
) -> tuple[int, str]:
    """As `load`, but the LLVM IR is made only if no kernel is known under `key`.

    The key describes the kernel completely, together with the sources in `kernel/` and
    `backends/cpu/`; see Note [keys]. With the LLVM IR, `make` returns a note that is kept with the
    kernel and returned with its address: what has to be known to call it.

    >>> make = lambda: ("define i64 @thrice(i64 %x) { %y = mul i64 %x, 3 ret i64 %y }", "i64")
    >>> address, note = lookup("thrice", "3 x", make)
    >>> ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(14), note
    (42, 'i64')
    """
    sources = _sources()
    if sources is None:
        text, note = make()
        return load(name, text, why, source, tuned), note
    return _find(name, _key("key", name, key, sources), make, why, source, tuned)


def target() -> Any:
    """LLVM's description of this machine."""
    return _tools().machine


@functools.cache
def features() -> frozenset[str]:
    """What the processor can do, in LLVM's words.

    `UNDERTOW_CPU_FEATURES=-avx512f,-fma` takes features away, `baseline` all that not every
    processor of the architecture has, to run what another machine would; see `vector_bytes`, too.
    """
    return frozenset(f[1:] for f in _tools().features.split(",") if f[0] == "+")


@functools.cache
def vector_bytes() -> int:
    """How long vectors are that code for this machine computes with.

    With `UNDERTOW_CPU_FEATURES=wide` as long as any machine's: where registers are shorter, LLVM
    makes several of each, so that the code of larger machines can be tested, if not timed.
    """
    if _tools().wide or features() >= {"avx512f", "avx512bw", "avx512dq", "avx512vl"}:
        return 64
    return 32 if "avx2" in features() else 16


def _tools() -> _Tools:
    """Import llvmlite and prepare it, on first use; under the lock, see Note [lifetime]."""
    return _made or _undisturbed(_make_tools)


def _make_tools() -> _Tools:
    global _made
    with _lock:
        if _made is None:
            _made = _prepare()
    return _made


def _prepare() -> _Tools:
    debug.wanted()  # a wrong word is an error before anything else happens
    disk, where = cache.from_environment()
    debug.note(f"kernel cache on disk: {where}")

    import llvmlite
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    cpu, features = llvm.get_host_cpu_name(), _changed(dict(llvm.get_host_cpu_features()))
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu, features=features, opt=3, jit=True
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine))
    versions = f"{llvmlite.__version__} {llvm.llvm_version_info}"
    facts = (versions, machine.triple, cpu, features, "wide" in _words())
    return _Tools(llvm, machine, engine, disk, *facts)


# What every processor of an architecture has: x86-64 without extensions, and 64-bit ARM.
_BASELINE = {"64bit", "cmov", "cx8", "fxsr", "mmx", "sse", "sse2", "fp-armv8", "neon"}
_AVX512 = ("avx512", "avx10", "amx-avx512")
_AVX2 = ("avx2", "avxifma", "avxne", "avxvnni", "sha512", "sm3", "sm4", "vaes", *_AVX512)
_AVX = ("avx", "f16c", "fma", "vpclmulqdq", "xop", *_AVX2)


def _words() -> list[str]:
    return os.environ.get("UNDERTOW_CPU_FEATURES", "").replace(",", " ").split()


def _changed(known: dict[str, bool]) -> str:
    """The features of this processor, changed as the environment asks.

    With a feature go those that need it: LLVM would switch it on again for any that is left.
    """
    needs = {"avx": _AVX, "avx2": _AVX2, "avx512f": _AVX512}
    if "sse2" in known:
        # Gathers are slow on most processors, and half as fast on Intel's since Downfall was
        # mitigated. A load for each lane is never much slower, and often twice as fast.
        known["prefer-no-gather"] = True
    for word in _words():
        name = word.lstrip("+-")
        if word == "wide":  # no feature of LLVM's; see `vector_bytes`
            continue
        if word == "baseline":
            known = {name: on and name in _BASELINE for name, on in known.items()}
        elif word[0] == "-":
            known[name] = False
            known |= {other: False for other in known if other.startswith(needs.get(name, ()))}
        else:
            known[name] = True
    return ",".join(("+" if on else "-") + name for name, on in sorted(known.items()))


def _find(
    name: str,
    key: str,
    make: Callable[[], tuple[str, str]],
    why: str,
    source: str | Callable[[], str] | None,
    tuned: bool,
) -> tuple[int, str]:
    """The kernel of this key: from memory, from disk, or compiled; once, whoever asks."""
    begin = time.perf_counter()
    found = _loaded.get(key)
    if found is None:
        return _undisturbed(lambda: _kept(name, key, make, why, source, tuned))
    debug.kernel(name, "from memory", time.perf_counter() - begin, 0, why)
    return found


def _kept(
    name: str,
    key: str,
    make: Callable[[], tuple[str, str]],
    why: str,
    source: str | Callable[[], str] | None,
    tuned: bool,
) -> tuple[int, str]:
    """The kernel of this key, kept in memory."""
    begin = time.perf_counter()
    with _lock:
        found = _loaded.get(key)
        if found is not None:
            return found
        tools = _tools()
        symbol = f"{name}.{key[:24]}"
        listed = debug.wanted() & {"ir", "asm"}  # then compile, to have what to show
        entry = tools.disk.get(key) if tools.disk and not listed else None
        origin = "from disk"
        if entry is None:
            origin = "compiled"
            text, note = make()
            data = _compile(tools, name, symbol, text, source, tuned)
            if tools.disk:
                tools.disk.put(key, note.encode() + b"\0" + data)
        else:
            head, _, data = entry.partition(b"\0")
            note = head.decode()
        tools.engine.add_object_file(tools.llvm.ObjectFileRef.from_data(data))
        tools.engine.finalize_object()
        address = int(tools.engine.get_function_address(symbol))
        assert address, f"the object code of {name} has no {symbol}"
        found = _loaded[key] = address, note
        took = time.perf_counter() - begin
        debug.kernel(name, origin, took, len(data), why)
        if origin == "compiled":
            debug.compiled(took)
        return found


def _compile(
    tools: _Tools,
    name: str,
    symbol: str,
    text: str,
    source: str | Callable[[], str] | None,
    tuned: bool,
) -> bytes:
    """The object code of a module in which `name` is called `symbol` and all else is internal."""
    llvm, machine = tools.llvm, tools.machine
    debug.loops(name, source)
    debug.listing("ir", name, text)
    try:
        module = llvm.parse_assembly(text)
        module.verify()
        entry = module.get_function(name)
    except (RuntimeError, NameError) as error:
        raise RuntimeError(f"the LLVM IR of the kernel {name} is not valid: {error}") from error
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    if entry.is_declaration:
        raise RuntimeError(f"the LLVM IR of the kernel {name} only declares it")
    entry.name = symbol
    for value in [*module.functions, *module.global_variables]:
        if not value.is_declaration:
            value.linkage = "external" if value.name == symbol else "internal"
    options = llvm.create_pipeline_tuning_options(speed_level=LEVEL)
    builder = llvm.create_pass_builder(machine, options)
    (_short_pipeline(llvm) if tuned else builder.getModulePassManager()).run(module, builder)
    if "asm" in debug.wanted():
        debug.listing("asm", name, machine.emit_assembly(module))
    data: bytes = machine.emit_object(module)
    missing = [s for s in _undefined(llvm, data) if llvm.address_of_symbol(s) is None]
    if missing:  # LLVM would end the process
        raise RuntimeError(f"the kernel {name} calls {', '.join(missing)}, which is nowhere")
    return data


def _short_pipeline(llvm: Any) -> Any:
    """The passes without which code is bad, which take a quarter of the time of all of them."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_loop_rotate_pass()
    passes.add_new_gvn_pass()
    return passes


def _undefined(llvm: Any, data: bytes) -> list[str]:
    """The symbols that an object needs from elsewhere; of ELF, the others have to be right."""
    if data[:5] != b"\x7fELF\x02":
        return []
    sections = {s.name(): s.data() for s in llvm.ObjectFileRef.from_data(data).sections()}
    order = "<" if data[5] == 1 else ">"
    found = []
    for name, _, _, section, _, _ in struct.iter_unpack(order + "IBBHQQ", sections[b".symtab"]):
        if name and not section:
            strings = sections[b".strtab"]
            found.append(strings[name : strings.index(b"\0", name)].decode())
    return found


def _key(*parts: str) -> str:
    """The hash over these and over everything else that matters; see Note [keys]."""
    digest = hashlib.blake2b(_circumstances(), digest_size=32)
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "little"))
        digest.update(encoded)
    return digest.hexdigest()


@functools.cache
def _circumstances() -> bytes:
    tools = _tools()
    package = sys.modules[__name__.partition(".")[0]]
    facts = (
        package.__version__,
        tools.versions,
        tools.triple,
        tools.cpu,
        tools.features,
        tools.wide,
        LEVEL,
        _content(_here),
    )
    return repr(facts).encode()


def _content(*files: Path) -> str:
    """A hash over the content of files; "" if they cannot be read, as in a zip archive."""
    digest = hashlib.blake2b(digest_size=16)
    try:
        for file in files:
            digest.update(f"{file.name} {file.stat().st_size} ".encode() + file.read_bytes())
    except OSError:
        return ""
    return digest.hexdigest()


def _generators() -> dict[Path, tuple[int, float]]:
    """The files of the generators, with size and time of change."""
    folders = _here.parents[1], _here.parents[3] / "kernel"
    found = [(file, file.stat()) for folder in folders for file in sorted(folder.rglob("*.py"))]
    return {file: (info.st_size, info.st_mtime) for file, info in found}


_here = Path(__file__)
_imported = _generators()
_MARGIN = 2.0  # seconds that importing may have taken, and that a file system's clock may be off


@functools.cache
def _sources() -> str | None:
    """A hash over the generators; None if they may not be those that were imported."""
    content = _content(*_imported)
    newest = max((time for _, time in _imported.values()), default=0.0)
    same = newest < IMPORTED - _MARGIN and _generators() == _imported
    return content if _imported and content and same else None


_DATA = object.__basicsize__  # where an ndarray keeps its address, behind Python's own fields
_at = ctypes.c_size_t.from_address


def address(array: Any) -> int:
    """The address of an array's first element.

    >>> x = np.zeros(3)
    >>> address(x) == x.__array_interface__["data"][0]
    True
    """
    return _at(id(array) + _DATA).value


_sample = np.zeros(1)
if sys.implementation.name != "cpython" or address(_sample) != _sample.ctypes.data:

    def address(array: Any) -> int:
        """The address of an array's first element, for another layout of objects."""
        return int(array.__array_interface__["data"][0])


def closed() -> bool:
    """Whether the process ends, and nobody but the main thread may compile."""
    return _exiting


@atexit.register
def _close() -> None:
    """Keep everybody but this thread out of LLVM; what it still compiles, it compiles itself."""
    global _exiting
    _lock.acquire(timeout=5.0)
    _exiting = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )
