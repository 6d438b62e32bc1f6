"""torch's names of products in few bits, and of others that stand beside their public form."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...core.dispatch import cast
from ...core.register import FUNCTIONAL, FUNCTIONS
from ...core.tensor import Tensor
from ...dtypes import DTypeLike
from ...errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from .grouped import grouped_mm
from .matmul import matmul


def _grouped_mm(
    self: Tensor,
    mat2: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """`nn.functional.grouped_mm`, with its arguments by position."""
    return grouped_mm(self, mat2, offs=offs, bias=bias, out_dtype=out_dtype)


def _scaled_mm(
    self: Tensor,
    mat2: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    scale_result: Tensor | None = None,
    out_dtype: DTypeLike | None = None,
    use_fast_accum: bool = False,
) -> Tensor:
    """The product of two matrices of eight bits, each times its scale: a number, or one per row.

    It is computed in single precision, and rounded once.
    """
    op = "_scaled_mm"
    if self.dtype not in dtypes.FLOAT8 or mat2.dtype not in dtypes.FLOAT8:
        raise DTypeError(f"[{op}] expects two float8 matrices, got {self.dtype} and {mat2.dtype}")
    rows, columns = self.shape[0], mat2.shape[1]
    for name, scale, shape in (("scale_a", scale_a, (rows, 1)), ("scale_b", scale_b, (1, columns))):
        if scale.numel() != 1 and scale.shape != shape:
            raise ShapeError(
                f"[{op}] {name} must be one number or have the shape {shape}, got {scale.shape}"
            )
    out = matmul(self.float(), mat2.float())
    out = out * (scale_a if scale_a.ndim == 2 else scale_a.reshape(()))
    out = out * (scale_b if scale_b.ndim == 2 else scale_b.reshape(()))
    if bias is not None:
        out = out + bias.float()
    wanted = self.dtype if out_dtype is None else dtypes.as_dtype(out_dtype)
    if scale_result is not None and wanted in dtypes.FLOAT8:
        out = out * scale_result.float()
    return cast(out, wanted)


def _int_mm(self: Tensor, mat2: Tensor) -> Tensor:
    """The product of two int8 matrices, in int32."""
    if self.dtype is not dtypes.int8 or mat2.dtype is not dtypes.int8:
        raise DTypeError(f"[_int_mm] expects two int8 matrices, got {self.dtype} and {mat2.dtype}")
    if self.ndim != 2 or mat2.ndim != 2:
        raise ShapeError(f"[_int_mm] expects matrices, got {self.shape} and {mat2.shape}")
    depth = self.shape[1]
    if depth << 14 < 1 << 24:  # single precision holds every sum exactly
        return cast(matmul(self.float(), mat2.float()), dtypes.int32)
    return cast(matmul(self.double(), mat2.double()), dtypes.int32)


def _weight_int8pack_mm(self: Tensor, mat2: Tensor, scales: Tensor) -> Tensor:
    """`self` times the transpose of int8 weights, each row of which has a scale."""
    wide = dtypes.promote_types(self.dtype, dtypes.float32)
    out = matmul(self.to(wide), mat2.to(wide).mT) * scales.to(wide)
    return cast(out, self.dtype)


def _refusing(name: str, instead: str) -> Any:
    def refuse(*args: Any, **options: Any) -> Any:
        raise UnsupportedError(f"[{name}] is for weights as other devices pack them; {instead}")

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


_weight_int4pack_mm = _refusing("_weight_int4pack_mm", "unpack them and use matmul")
_weight_int4pack_mm_for_cpu = _refusing("_weight_int4pack_mm_for_cpu", "unpack and use matmul")
_convert_weight_to_int4pack = _refusing("_convert_weight_to_int4pack", "keep them as int8")
_scaled_grouped_mm = _refusing("_scaled_grouped_mm", "convert with .float() and use grouped_mm")


def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`nn.functional.embedding_bag` as torch has it below: 0 is a sum, 1 a mean, 2 a maximum.

    Behind the result stand the bag of each index, how many each has, and for a maximum which row
    it came from.

    >>> import undertow as ut
    >>> table = ut.tensor([[1.0], [2.0], [30.0]])
    >>> ut.embedding_bag(table, ut.tensor([0, 1, 2]), ut.tensor([0, 2]))[0].flatten()
    tensor([ 3., 30.])
    """
    if mode not in (0, 1, 2):
        raise ArgumentError(f"[embedding_bag] mode must be 0, 1 or 2, got {mode}")
    out = FUNCTIONAL["embedding_bag"](
        indices,
        weight,
        offsets,
        scale_grad_by_freq=scale_grad_by_freq,
        mode=("sum", "mean", "max")[mode],
        sparse=sparse,
        per_sample_weights=per_sample_weights,
        include_last_offset=include_last_offset,
        padding_idx=padding_idx,
    )
    starts = offsets[:-1] if include_last_offset else offsets
    places = FUNCTIONS["arange"](len(indices), device=indices.device)
    bag = FUNCTIONS["searchsorted"](starts.long(), places, right=True) - 1
    if include_last_offset:
        bag = bag[: int(offsets[-1])]
    used = indices[: len(bag)]
    counted = bag if padding_idx is None else bag[used != padding_idx % len(weight)]
    size = counted.bincount(minlength=len(starts))
    if mode != 2:
        return out, bag, size, size.clone()
    rows = weight.detach()[used]
    hit = (rows == out.detach()[bag]).to(dtypes.int64) * (used.long() + 1).unsqueeze(-1)
    first = FUNCTIONS["zeros"](out.shape, dtype=dtypes.int64, device=out.device)
    return out, bag, size, (first.index_reduce(0, bag, hit, "amax") - 1).clamp_min(0)
