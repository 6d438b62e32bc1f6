"""Names of memory layouts and formats: accepted where torch accepts them.

Every Tensor is strided (sparse ones are of undertow.sparse), and what makes memory makes it
row-major; see docs/compatibility.md.
"""

from __future__ import annotations

__all__ = [
    "channels_last",
    "channels_last_3d",
    "contiguous_format",
    "layout",
    "memory_format",
    "preserve_format",
    "sparse_coo",
    "sparse_csc",
    "sparse_csr",
    "strided",
]


class _Named:
    """A constant that is known by its name, and compared by identity."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"undertow.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class layout(_Named):
    """How elements are stored: `ut.strided`, `ut.sparse_coo`, `ut.sparse_csr` or `ut.sparse_csc`.

    >>> import undertow as ut
    >>> ut.ones(2).layout
    undertow.strided
    """

    __slots__ = ()


class memory_format(_Named):
    """An order of dimensions in memory: `ut.channels_last` and its kin."""

    __slots__ = ()


strided = layout("strided")
sparse_coo = layout("sparse_coo")
sparse_csr = layout("sparse_csr")
sparse_csc = layout("sparse_csc")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
