"""Functions that torch keeps behind an underscore, and that libraries and its own layers call.

Each is a few ops of ours, with their gradients; what torch's returns for its own backward is
returned as well, without one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.register import FUNCTIONAL, FUNCTIONS
from ..core.tensor import Tensor
from ..dtypes import DType, Number, int64, uint8
from ..errors import ArgumentError, ShapeError, UnsupportedError
from ..ops.elementwise.comparison import where
from ..ops.nn.native import native_batch_norm
from ..ops.nn.resampling import resampled, resampled_bytes
from ..ops.shape.joining import cat
from ..shapes import wrap_dim

_segment_reduce = FUNCTIONS["segment_reduce"]


def _softmax_backward_data(
    grad_output: Tensor, output: Tensor, dim: int, input_dtype: DType
) -> Tensor:
    """The gradient of what a softmax `output` was made of.

    >>> import undertow as ut
    >>> y = ut.tensor([0.0, 1.0]).softmax(0)
    >>> ut._softmax_backward_data(ut.ones(2), y, 0, ut.float32)
    tensor([0., 0.])
    """
    slope: Tensor = output * (grad_output - (grad_output * output).sum(dim, keepdim=True))
    return slope.to(input_dtype)


def _log_softmax_backward_data(
    grad_output: Tensor, output: Tensor, dim: int, input_dtype: DType
) -> Tensor:
    """The gradient of what a log_softmax `output` was made of.

    >>> import undertow as ut
    >>> y = ut.tensor([0.0, 0.0]).log_softmax(0)
    >>> ut._log_softmax_backward_data(ut.tensor([1.0, 0.0]), y, 0, ut.float32)
    tensor([ 0.5000, -0.5000])
    """
    slope: Tensor = grad_output - output.exp() * grad_output.sum(dim, keepdim=True)
    return slope.to(input_dtype)


def _safe_softmax(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """A softmax whose rows of nothing but -inf are zeros, not NaN.

    >>> import undertow as ut
    >>> ut._safe_softmax(ut.tensor([-float("inf"), -float("inf")]), 0)
    tensor([0., 0.])
    """
    x = input if dtype is None else input.to(dtype)
    masked = (x == -float("inf")).all(dim, keepdim=True)
    y: Tensor = where(masked, 0, x).softmax(dim)
    return where(masked, 0, y)


def _native_batch_norm_legit(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Any,
    running_var: Any,
    training: Any = None,
    momentum: float | None = None,
    eps: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """`native_batch_norm`; its running statistics may be left out.

    >>> import undertow as ut
    >>> x = ut.tensor([[1.0], [5.0]])
    >>> ut._native_batch_norm_legit(x, None, None, True, 0.1, 0.0)[1]
    tensor([3.])
    """
    if isinstance(running_mean, bool):  # (input, weight, bias, training, momentum, eps)
        running_mean, running_var, training, momentum, eps = (
            None,
            None,
            running_mean,
            running_var,
            training,
        )
    if training is None or momentum is None or eps is None:
        raise ArgumentError("[_native_batch_norm_legit] needs training, momentum and eps")
    return native_batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )


def _batch_norm_with_update(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`native_batch_norm` in training, and an empty tensor, in which torch's devices keep notes.

    >>> import undertow as ut
    >>> x = ut.tensor([[1.0], [5.0]])
    >>> ut._batch_norm_with_update(x, None, None, ut.zeros(1), ut.ones(1), 0.1, 0.0)[1:3]
    (tensor([3.]), tensor([0.5000]))
    """
    found = native_batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return *found, input.new_empty(0, dtype=uint8)


def _upsample_bilinear2d_aa(
    input: Tensor,
    output_size: Sequence[int] | None,
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
    scale_factors: Sequence[float] | None = None,
) -> Tensor:
    """`interpolate(mode="bilinear", antialias=True)`, as images are made smaller.

    The scales tell how far output pixels are apart; without them the sizes do.

    >>> import undertow as ut
    >>> ut._upsample_bilinear2d_aa(ut.ones(1, 1, 4, 4), (2, 2), False)
    tensor([[[[1., 1.],
              [1., 1.]]]])
    """
    scales = (scales_h, scales_w)
    return _antialiased("bilinear", input, output_size, align_corners, scales, scale_factors)


def _upsample_bicubic2d_aa(
    input: Tensor,
    output_size: Sequence[int] | None,
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
    scale_factors: Sequence[float] | None = None,
) -> Tensor:
    """`interpolate(mode="bicubic", antialias=True)`; see `_upsample_bilinear2d_aa`.

    >>> import undertow as ut
    >>> ut._upsample_bicubic2d_aa(ut.ones(1, 1, 4, 4), (1, 1), False)
    tensor([[[[1.]]]])
    """
    scales = (scales_h, scales_w)
    return _antialiased("bicubic", input, output_size, align_corners, scales, scale_factors)


def _antialiased(
    mode: str,
    input: Tensor,
    size: Sequence[int] | None,
    align_corners: bool,
    scales: tuple[float | None, float | None],
    factors: Sequence[float] | None,
) -> Tensor:
    if factors is not None:
        size = None
    elif size is not None and scales != (None, None):
        if input.dtype is uint8:
            return resampled_bytes(input, size, scales, (mode, bool(align_corners), True))
        out = input
        for d, (m, scale) in enumerate(zip(size, scales, strict=True), 2):
            how = (mode, input.shape[d], m, scale, bool(align_corners), True)
            out = resampled(out, d, how)
        return out
    found: Tensor = FUNCTIONAL["interpolate"](
        input, None if size is None else tuple(size), factors, mode, align_corners, antialias=True
    )
    return found


def _unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False
) -> tuple[Tensor, Tensor]:
    """The distinct elements, and where each element went (nothing unless it is asked for).

    >>> import undertow as ut
    >>> ut._unique(ut.tensor([2, 1, 2]), return_inverse=True)
    (tensor([1, 2]), tensor([1, 0, 1]))
    """
    return _unique2(input, sorted, return_inverse)[:2]


def _unique2(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """`unique` with three results always, of which those not asked for are empty.

    >>> import undertow as ut
    >>> ut._unique2(ut.tensor([2, 1, 2]), return_counts=True)[2]
    tensor([1, 2])
    """
    values, inverse, counts = FUNCTIONS["unique"](input, sorted, True, True)
    none = inverse.new_empty(0)
    return values, inverse if return_inverse else none, counts if return_counts else none


def _unsafe_index(input: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """`input[indices]`, with None for a whole dimension.

    >>> import undertow as ut
    >>> ut._unsafe_index(ut.arange(4).reshape(2, 2), [None, ut.tensor([1])])
    tensor([[1],
            [3]])
    """
    return input[tuple(slice(None) if i is None else i for i in indices)]


def _unsafe_masked_index(
    input: Tensor, mask: Tensor, indices: Sequence[Tensor | None], fill: Number
) -> Tensor:
    """`input[indices]` where `mask` is true, `fill` elsewhere, whatever the indices are there.

    >>> import undertow as ut
    >>> x, at = ut.tensor([1.0, 2.0]), ut.tensor([1, 9])
    >>> ut._unsafe_masked_index(x, ut.tensor([True, False]), [at], -1)
    tensor([ 2., -1.])
    """
    return where(mask, _unsafe_index(input, _kept(input, indices)), fill)


def _unsafe_masked_index_put_accumulate(
    input: Tensor, mask: Tensor, indices: Sequence[Tensor | None], values: Tensor
) -> Tensor:
    """`input` with `values` added at `indices` where `mask` is true.

    >>> import undertow as ut
    >>> x, at = ut.tensor([1.0, 2.0]), ut.tensor([1, 9])
    >>> ut._unsafe_masked_index_put_accumulate(x, ut.tensor([True, False]), [at], ut.ones(2))
    tensor([1., 3.])
    """
    found: Tensor = input.index_put(_kept(input, indices), where(mask, values, 0), accumulate=True)
    return found


def _kept(input: Tensor, indices: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The indices, those that are out of range at the nearest place."""
    return [
        i if i is None else i.clamp(-size, size - 1)
        for i, size in zip(indices, input.shape, strict=False)
    ]


def _chunk_cat(tensors: Sequence[Tensor], dim: int, num_chunks: int) -> Tensor:
    """Each tensor in `num_chunks` equal chunks along `dim`, padded with zeros, and all joined.

    The chunks become a new dimension at `dim`; those of a tensor are flattened from there on.

    >>> import undertow as ut
    >>> ut._chunk_cat([ut.tensor([1, 2, 3]), ut.tensor([4, 5])], 0, 2)
    tensor([[1, 2, 4],
            [3, 0, 5]])
    """
    if num_chunks < 1:
        raise ArgumentError(f"[_chunk_cat] num_chunks must be at least 1, got {num_chunks}")
    if not tensors:
        raise ArgumentError("[_chunk_cat] expects at least one tensor, got an empty list")
    rows = []
    for x in tensors:
        d = wrap_dim("_chunk_cat", dim, x.ndim)
        if x.shape[:d] != tensors[0].shape[:d]:
            raise ShapeError(
                f"[_chunk_cat] shapes {tensors[0].shape} and {x.shape} must agree before dim {dim}"
            )
        missing = -x.shape[d] % num_chunks
        if missing:
            none = x.new_zeros((*x.shape[:d], missing, *x.shape[d + 1 :]))
            x = cat([x, none], d)
        rows.append(x.reshape(*x.shape[:d], num_chunks, -1))
    return cat(rows, -1)


def _assert_async(
    input: Tensor, assert_msg: str = "Expected Tensor with single nonzero value"
) -> None:
    """Raise unless the one element of a tensor is True; at once, as on any CPU.

    >>> import undertow as ut
    >>> ut._assert_async(ut.tensor(True))
    """
    if input.numel() != 1:
        raise ShapeError(f"[_assert_async] expects one element, got shape {tuple(input.shape)}")
    if not bool(input):
        raise RuntimeError(assert_msg)


def _cast_Long(input: Tensor, non_blocking: bool = False) -> Tensor:
    """The tensor as int64."""
    return input.long()


def _shape_as_tensor(input: Tensor) -> Tensor:
    """The sizes as a tensor of int64.

    >>> import undertow as ut
    >>> ut._shape_as_tensor(ut.ones(2, 3))
    tensor([2, 3])
    """
    made: Tensor = FUNCTIONS["tensor"](list(input.shape), dtype=int64)
    return made


def _make_per_tensor_quantized_tensor(*args: Any, **kwargs: Any) -> Any:
    """An error when it is called: there are no quantised tensors here."""
    raise UnsupportedError(
        "[_make_per_tensor_quantized_tensor] there are no quantised tensors; keep floating point, "
        "or ut.fake_quantize_per_tensor_affine"
    )
