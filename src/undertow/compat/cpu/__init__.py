"""`undertow.cpu`: the CPU where programs expect a device's module."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ...backends.cpu.codegen.jit import features
from . import amp

__all__ = [
    "amp",
    "current_device",
    "device_count",
    "get_capabilities",
    "is_available",
    "is_initialized",
    "set_device",
    "synchronize",
]

# torch's words for instructions, and LLVM's where it has another one.
_WORDS = {
    "x86_64": """sse sse2 sse3 ssse3 sse4_1=sse4.1 sse4_2=sse4.2 sse4a avx avx2 avx_vnni=avxvnni
        avx512_f=avx512f avx512_cd=avx512cd avx512_dq=avx512dq avx512_bw=avx512bw avx512_vl=avx512vl
        avx512_ifma=avx512ifma avx512_vbmi=avx512vbmi avx512_vbmi2=avx512vbmi2
        avx512_bitalg=avx512bitalg avx512_vpopcntdq=avx512vpopcntdq avx512_vnni=avx512vnni
        avx512_bf16=avx512bf16 avx512_fp16=avx512fp16 avx512_vp2intersect=avx512vp2intersect
        avx10_1=avx10.1 avx10_2=avx10.2 avx_vnni_int8=avxvnniint8 avx_vnni_int16=avxvnniint16
        avx_ne_convert=avxneconvert amx_bf16=amx-bf16 amx_tile=amx-tile amx_int8=amx-int8
        amx_fp16=amx-fp16 fma3=fma fma4 f16c bmi bmi2 popcnt lzcnt aes sha clflushopt clwb""",
    "arm64": """neon fp16_arith=fullfp16 bf16 i8mm dot=dotprod sve sve2 sme sme2 atomics=lse
        fhm=fp16fml rdm crc32=crc aes sha2""",
}


def is_available() -> bool:
    """Whether there is a CPU.

    >>> import undertow as ut
    >>> ut.cpu.is_available(), ut.cpu.device_count()
    (True, 1)
    """
    return True


def is_initialized() -> bool:
    """Whether it is in use."""
    return True


def device_count() -> int:
    """One: all cores together."""
    return 1


def current_device() -> str:
    """Its name."""
    return "cpu"


def set_device(device: Any) -> None:
    """Nothing: there is one."""


def synchronize(device: Any = None) -> None:
    """Nothing: an operation has ended when it returns."""


def get_capabilities() -> Mapping[str, Any]:
    """What the processor can do, by torch's words: the instructions that kernels may use.

    >>> import undertow as ut
    >>> isinstance(ut.cpu.get_capabilities().get("avx2", False), bool)
    True
    """
    machine = platform.machine().lower()
    kind = {"amd64": "x86_64", "aarch64": "arm64"}.get(machine, machine)
    found: dict[str, Any] = {"architecture": kind, "num_logical_cores": os.cpu_count() or 1}
    for word in _WORDS.get(kind, "").split():
        ours, _, llvms = word.partition("=")
        found[ours] = (llvms or ours) in features()
    return MappingProxyType(found)


def _supports(word: str, name: str) -> Any:
    def supported() -> bool:
        return get_capabilities().get(word, False) is True

    supported.__name__ = supported.__qualname__ = f"_is_{name}_supported"
    supported.__doc__ = f"Whether the processor has {name}."
    return supported


_is_avx2_supported = _supports("avx2", "avx2")
_is_avx512_supported = _supports("avx512_f", "avx512")
_is_avx512_bf16_supported = _supports("avx512_bf16", "avx512_bf16")
_is_vnni_supported = _supports("avx512_vnni", "vnni")
_is_amx_tile_supported = _supports("amx_tile", "amx_tile")
_is_amx_fp16_supported = _supports("amx_fp16", "amx_fp16")
