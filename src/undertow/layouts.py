"""Names of memory layouts and formats: accepted where torch accepts them.

Every Tensor is strided (sparse ones are of undertow.sparse), and what makes memory makes it
row-major; see docs/compatibility.md.
"""

from __future__ import annotations

__all__ = [
    "channels_last",
    "channels_last_3d",
    "contiguous_format",
    "jagged",
    "layout",
    "memory_format",
    "per_channel_affine",
    "per_channel_affine_float_qparams",
    "per_channel_symmetric",
    "per_tensor_affine",
    "per_tensor_symmetric",
    "preserve_format",
    "qscheme",
    "sparse_bsc",
    "sparse_bsr",
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
    """How elements are stored: `ut.strided`, `ut.sparse_coo`, `ut.sparse_csr` and its kin.

    >>> import undertow as ut
    >>> ut.ones(2).layout
    undertow.strided
    """

    __slots__ = ()


class memory_format(_Named):
    """An order of dimensions in memory: `ut.channels_last` and its kin.

    Results are row-major all the same; `is_contiguous` asks whether memory has another order.

    >>> import undertow as ut
    >>> image = ut.zeros(1, 8, 8, 3).permute(0, 3, 1, 2)
    >>> image.shape, image.is_contiguous(memory_format=ut.channels_last)
    ((1, 3, 8, 8), True)
    """

    __slots__ = ()


class qscheme(_Named):
    """How integers stand for numbers: by tensor or channel, around zero or not.

    >>> import undertow as ut
    >>> isinstance(ut.per_tensor_affine, ut.qscheme)
    True
    """

    __slots__ = ()


per_tensor_affine = qscheme("per_tensor_affine")
per_tensor_symmetric = qscheme("per_tensor_symmetric")
per_channel_affine = qscheme("per_channel_affine")
per_channel_symmetric = qscheme("per_channel_symmetric")
per_channel_affine_float_qparams = qscheme("per_channel_affine_float_qparams")
strided = layout("strided")
jagged = layout("jagged")
sparse_coo = layout("sparse_coo")
sparse_csr = layout("sparse_csr")
sparse_csc = layout("sparse_csc")
sparse_bsr = layout("sparse_bsr")
sparse_bsc = layout("sparse_bsc")
LAYOUTS = {
    one.name: one for one in (strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)
}
contiguous_format = legacy_contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
