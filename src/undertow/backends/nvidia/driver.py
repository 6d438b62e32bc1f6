"""NVIDIA's driver and compiler by ctypes: the only file that knows their functions.

`UNDERTOW_LIBCUDA` and `UNDERTOW_NVRTC` name other libraries than those that are found.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...errors import DeviceError, OutOfMemoryError

OUT_OF_MEMORY, NOT_READY, OLD_DRIVER = 2, 600, 222  # what a call of the driver may return

_P, _I, _U, _S = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_size_t
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "cuInit": (_U,),
    "cuDriverGetVersion": (_P,),
    "cuDeviceGetCount": (_P,),
    "cuDeviceGet": (_P, _I),
    "cuDeviceGetName": (_P, _I, _I),
    "cuDeviceGetAttribute": (_P, _I, _I),
    "cuDeviceTotalMem_v2": (_P, _I),
    "cuDevicePrimaryCtxRetain": (_P, _I),
    "cuCtxSetCurrent": (_P,),
    "cuCtxSynchronize": (),
    "cuMemGetInfo_v2": (_P, _P),
    "cuMemAlloc_v2": (_P, _S),
    "cuMemFree_v2": (_P,),
    "cuMemcpyHtoDAsync_v2": (_P, _P, _S, _P),
    "cuMemcpyDtoHAsync_v2": (_P, _P, _S, _P),
    "cuStreamCreateWithPriority": (_P, _U, _I),
    "cuStreamDestroy_v2": (_P,),
    "cuStreamSynchronize": (_P,),
    "cuStreamQuery": (_P,),
    "cuStreamWaitEvent": (_P, _P, _U),
    "cuEventCreate": (_P, _U),
    "cuEventDestroy_v2": (_P,),
    "cuEventRecord": (_P, _P),
    "cuEventQuery": (_P,),
    "cuEventSynchronize": (_P,),
    "cuEventElapsedTime_v2": (_P, _P, _P),
    "cuModuleLoadData": (_P, ctypes.c_char_p),
    "cuModuleGetFunction": (_P, _P, ctypes.c_char_p),
    "cuLaunchKernelEx": (_P, _P, _P, _P),
}


class Driver:
    """The functions of libcuda, `cuMemAlloc` for example as `mem_alloc`; errors are raised."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.raw = {}
        for name, types in _FUNCTIONS.items():
            # The second version of this one came with CUDA 12.8.
            there = hasattr(library, name)
            function = getattr(library, name if there else name.removesuffix("_v2"))
            function.argtypes, function.restype = types, _I
            self.raw[name] = function
        name_of = library.cuGetErrorName
        name_of.argtypes, name_of.restype = (_I, _P), _I
        self.call("cuInit", 0)

    def call(self, name: str, *args: Any) -> None:
        """Call a function of the driver; what it returns, if not 0, is raised."""
        code = self.raw[name](*args)
        if code:
            raise self.error(name, code)

    def made(self, name: str, kind: Any, *args: Any) -> Any:
        """What a function writes behind its first argument."""
        value = kind()
        self.call(name, ctypes.byref(value), *args)
        return value.value

    def error(self, what: str, code: int) -> Exception:
        """The error of a call, by the driver's own name."""
        text = ctypes.c_char_p()
        self.library.cuGetErrorName(code, ctypes.byref(text))
        name = (text.value or b"an unknown error").decode()
        if code == OUT_OF_MEMORY:
            return OutOfMemoryError(f"[cuda] {what}: {name}")
        made = DeviceError(f"[cuda] {what} failed: {name} ({code})")
        made.code = code  # type: ignore[attr-defined]
        return made

    def attribute(self, device: int, number: int) -> int:
        """A number of `CUdevice_attribute`."""
        return int(self.made("cuDeviceGetAttribute", _I, number, device))


@functools.cache
def _loaded(name: str, pid: int) -> Driver | str:
    try:
        return Driver(ctypes.CDLL(name))
    except (OSError, AttributeError, DeviceError) as error:
        return str(error)


def driver() -> Driver:
    """The driver, or an error that says why there is none."""
    name = os.environ.get("UNDERTOW_LIBCUDA") or (
        "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    )
    found = _loaded(name, os.getpid())
    if isinstance(found, str):
        raise DeviceError(
            f"[cuda] there is no NVIDIA driver here ({found}); use device='cpu', or 'webgpu' for "
            "other cards"
        )
    return found


def device_count() -> int:
    """How many cards the driver sees; 0 without a driver."""
    try:
        return int(driver().made("cuDeviceGetCount", _I))
    except DeviceError:
        return 0


def require_card(index: int = 0) -> None:
    """An error that says why there is no such card, if there is none."""
    count = int(driver().made("cuDeviceGetCount", _I))
    if index >= count:
        raise DeviceError(f"[cuda] there is no card {index}; the driver sees {count}")


def card_name(index: int) -> str:
    """What a card calls itself."""
    text = ctypes.create_string_buffer(256)
    device = driver().made("cuDeviceGet", _I, index)
    driver().call("cuDeviceGetName", text, 256, device)
    return text.value.decode()


# The compiler ---------------------------------------------------------------------------------
@functools.cache
def compiler() -> Any:
    """NVRTC, of NVIDIA's wheel or of a toolkit."""
    told = os.environ.get("UNDERTOW_NVRTC")
    wheels = [Path(p) / "nvidia" for p in sys.path]
    found = [str(f) for w in wheels for f in w.glob("*/lib/libnvrtc.so.1[0-9]")]
    found += [str(f) for w in wheels for f in w.glob("*/bin/**/nvrtc64_1*_0.dll")]
    names = [told] if told else [*found, "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]
    for name in names:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        return library
    raise DeviceError(
        f"[cuda] there is no NVRTC (tried {', '.join(names)}); pip install 'undertow[cuda]'"
    )


def compiler_version() -> str:
    """NVRTC's version, "13.4"."""
    major, minor = _I(), _I()
    compiler().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


def compiled(text: str, name: str, arch: str) -> bytes:
    """A text as PTX (`arch` "compute_90"), or as code of one architecture ("sm_90")."""
    library = compiler()
    program = _P()

    def call(function: Callable[..., int], *args: Any) -> None:
        code = function(*args)
        if code:
            why = library.nvrtcGetErrorString(code).decode()
            log = _bytes(library.nvrtcGetProgramLog, library.nvrtcGetProgramLogSize, program)
            raise DeviceError(f"[cuda] NVRTC on {name} for {arch}: {why}\n{log.decode()}")

    source = ctypes.c_char_p(text.encode())
    call(library.nvrtcCreateProgram, ctypes.byref(program), source, name.encode(), 0, None, None)
    try:
        given = [b"-arch=" + arch.encode(), b"-fmad=false", b"-std=c++17", b"-default-device"]
        options = (ctypes.c_char_p * len(given))(*given)
        call(library.nvrtcCompileProgram, program, len(given), options)
        if arch.startswith("sm_"):
            return _bytes(library.nvrtcGetCUBIN, library.nvrtcGetCUBINSize, program)
        return _bytes(library.nvrtcGetPTX, library.nvrtcGetPTXSize, program)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _bytes(get: Callable[..., int], size: Callable[..., int], program: Any) -> bytes:
    count = _S()
    size(program, ctypes.byref(count))
    held = ctypes.create_string_buffer(count.value)
    get(program, held)
    return held.raw
