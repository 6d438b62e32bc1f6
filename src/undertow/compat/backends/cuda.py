"""Settings of products on CUDA, which is not here: they are kept and have no effect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...errors import ArgumentError
from ...nn.attention import ALLOWED as _allowed
from ...nn.attention import allowing as _allowing

__all__ = [
    "cudnn_sdp_enabled",
    "enable_cudnn_sdp",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "is_built",
    "is_flash_attention_available",
    "math_sdp_enabled",
    "matmul",
    "mem_efficient_sdp_enabled",
    "preferred_blas_library",
    "preferred_linalg_library",
    "sdp_kernel",
]


class Matmul:
    """What may be less precise in products on CUDA."""

    def __init__(self) -> None:
        self.allow_tf32 = False
        self.allow_fp16_reduced_precision_reduction = True
        self.allow_bf16_reduced_precision_reduction = True
        self.allow_fp16_accumulation = False
        self.fp32_precision = "none"


matmul = Matmul()
_libraries = {"linalg": "default", "blas": "default"}


def is_built() -> bool:
    """Whether the library was built for CUDA.

    >>> import undertow as ut
    >>> ut.backends.cuda.is_built()
    False
    >>> ut.backends.cuda.matmul.allow_tf32 = True  # accepted: there is nothing that it changes
    """
    return False


def is_flash_attention_available() -> bool:
    """Whether CUDA's kernel of attention is here."""
    return False


def flash_sdp_enabled() -> bool:
    """What `enable_flash_sdp` set; attention has one kernel here, whatever is set."""
    return _allowed["flash"]


def enable_flash_sdp(enabled: bool) -> None:
    """Kept without effect."""
    _allowed["flash"] = bool(enabled)


def mem_efficient_sdp_enabled() -> bool:
    """What `enable_mem_efficient_sdp` set."""
    return _allowed["mem_efficient"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Kept without effect."""
    _allowed["mem_efficient"] = bool(enabled)


def math_sdp_enabled() -> bool:
    """What `enable_math_sdp` set."""
    return _allowed["math"]


def enable_math_sdp(enabled: bool) -> None:
    """Kept without effect."""
    _allowed["math"] = bool(enabled)


def cudnn_sdp_enabled() -> bool:
    """What `enable_cudnn_sdp` set."""
    return _allowed["cudnn"]


def enable_cudnn_sdp(enabled: bool) -> None:
    """Kept without effect."""
    _allowed["cudnn"] = bool(enabled)


def preferred_linalg_library(backend: str | None = None) -> str:
    """The library that was wished for, "default", "cusolver" or "magma": kept without effect."""
    return _preferred("linalg", ("default", "cusolver", "magma"), backend)


def preferred_blas_library(backend: str | None = None) -> str:
    """The library that was wished for, "default", "cublas", "cublaslt" …: kept without effect."""
    return _preferred("blas", ("default", "cublas", "cublaslt", "hipblaslt", "ck"), backend)


def _preferred(kind: str, known: tuple[str, ...], backend: str | None) -> str:
    if backend is not None:
        if backend not in known:
            raise ArgumentError(
                f"[preferred_{kind}_library] backend is one of {known}, got {backend!r}"
            )
        _libraries[kind] = backend
    return _libraries[kind]


@contextmanager
def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Iterator[None]:
    """A block with other settings, which have no effect."""
    with _allowing(
        flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn
    ):
        yield
