"""Operators of torch that take other arguments than its functions, or have no function.

`aten_x` is `ops.aten.x`; each says in functions of the package what torch's operator computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from ..core.register import FUNCTIONAL as F
from ..core.register import FUNCTIONS as T
from ..core.register import SPACES
from ..core.tensor import Tensor
from ..errors import ArgumentError

_REDUCTIONS = ("none", "mean", "sum")


def _same(x: Tensor) -> Tensor:
    return x.view(x.shape)


aten_alias = _same
aten_lift = aten_lift_fresh = aten__lazy_clone = lambda x: x


def aten__to_copy(x: Tensor, *, dtype: Any = None, device: Any = None, **more: Any) -> Tensor:
    """A copy in another dtype or on another device."""
    return x.to(device=device or x.device, dtype=dtype or x.dtype, copy=True)


def aten__unsafe_view(x: Tensor, size: Sequence[int]) -> Tensor:
    """The elements in another shape."""
    return x.reshape(tuple(size))


aten__reshape_alias = lambda x, size, stride: x.reshape(tuple(size))


def aten_slice(
    x: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Tensor:
    """`x[..., start:end:step]` of one dimension."""
    place: list[slice] = [slice(None)] * (dim % x.ndim) + [slice(start, end, step)]
    found: Tensor = x[tuple(place)]
    return found


aten_slice_copy = lambda x, *args, **kw: aten_slice(x, *args, **kw).clone()


def aten_index(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """`x[indices]`, where None stands for a whole dimension."""
    found: Tensor = x[tuple(slice(None) if i is None else i for i in indices)]
    return found


def aten_embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of a table."""
    padding = None if padding_idx < 0 else padding_idx
    found: Tensor = F["embedding"](
        indices, weight, padding, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse
    )
    return found


def aten_convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    *more: Any,
) -> Tensor:
    """A convolution or its transpose, over as many dimensions as the kernel has."""
    n = weight.ndim - 2
    if transposed:
        made: Tensor = T[f"conv_transpose{n}d"](
            x, weight, bias, stride, padding, output_padding, groups, dilation
        )
        return made
    found: Tensor = T[f"conv{n}d"](x, weight, bias, stride, padding, dilation, groups)
    return found


aten__convolution = aten_convolution


def aten__softmax(x: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    """A softmax."""
    return x.softmax(dim)


def aten__log_softmax(x: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    """The logarithm of a softmax."""
    return x.log_softmax(dim)


def aten_constant_pad_nd(x: Tensor, pad: Sequence[int], value: Any = 0) -> Tensor:
    """A border of one value."""
    found: Tensor = F["pad"](x, list(pad), "constant", value)
    return found


def _padded(mode: str) -> Any:
    def padded(x: Tensor, padding: Sequence[int]) -> Tensor:
        found: Tensor = F["pad"](x, list(padding), mode)
        return found

    return padded


aten_reflection_pad1d = aten_reflection_pad2d = aten_reflection_pad3d = _padded("reflect")
aten_replication_pad1d = aten_replication_pad2d = aten_replication_pad3d = _padded("replicate")


def _upsampled(mode: str, aligned: bool) -> Any:
    def upsampled(x: Tensor, size: Any, *rest: Any, **named: Any) -> Tensor:
        align = rest[0] if aligned and rest else named.get("align_corners", False)
        factors = next((r for r in rest[aligned:] if isinstance(r, (list, tuple))), None)
        factors = named.get("scale_factors", factors)
        how = {"align_corners": align} if aligned else {}
        if size is not None:
            factors = None
        found: Tensor = F["interpolate"](x, size, factors, mode, **how)
        return found

    return upsampled


aten_upsample_nearest1d = aten_upsample_nearest2d = aten_upsample_nearest3d = _upsampled(
    "nearest", False
)
aten_upsample_linear1d = _upsampled("linear", True)
aten_upsample_bilinear2d = _upsampled("bilinear", True)
aten_upsample_bicubic2d = _upsampled("bicubic", True)
aten_upsample_trilinear3d = _upsampled("trilinear", True)


def _loss(name: str) -> Any:
    def loss(x: Tensor, target: Tensor, *args: Any, reduction: int = 1, **named: Any) -> Tensor:
        if args and isinstance(args[-1], int):
            *args, reduction = args  # type: ignore[assignment]
        found: Tensor = F[name](x, target, *args, reduction=_REDUCTIONS[reduction], **named)
        return found

    return loss


aten_mse_loss, aten_l1_loss = _loss("mse_loss"), _loss("l1_loss")
aten_binary_cross_entropy = _loss("binary_cross_entropy")
aten_soft_margin_loss = _loss("soft_margin_loss")
aten_multilabel_margin_loss = _loss("multilabel_margin_loss")


def aten_nll_loss_nd(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
) -> Tensor:
    """The mean of the negative entries at the targets."""
    how = {"reduction": _REDUCTIONS[reduction], "ignore_index": ignore_index}
    found: Tensor = F["nll_loss"](x, target, weight, **how)
    return found


aten_nll_loss = aten_nll_loss2d = aten_nll_loss_nd


def aten_cross_entropy_loss(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross entropy of logits."""
    how = {"reduction": _REDUCTIONS[reduction], "ignore_index": ignore_index}
    found: Tensor = F["cross_entropy"](x, target, weight, label_smoothing=label_smoothing, **how)
    return found


def aten_unfold(x: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Windows of one dimension."""
    return x.unfold(dimension, size, step)


def aten_im2col(x: Tensor, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Tensor:
    """Windows of pictures as columns."""
    found: Tensor = F["unfold"](x, kernel_size, dilation, padding, stride)
    return found


def aten_col2im(
    x: Tensor, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> Tensor:
    """Columns added into pictures."""
    found: Tensor = F["fold"](x, output_size, kernel_size, dilation, padding, stride)
    return found


def aten_max(x: Tensor, *args: Any, **named: Any) -> Any:
    """The largest element, or the larger of two tensors."""
    return T["max"](x, *args, **named)


def aten__local_scalar_dense(x: Tensor) -> Any:
    """The number in a tensor."""
    return x.item()


def aten_sym_size(x: Tensor, dim: int | None = None) -> Any:
    """A size, or all of them."""
    return tuple(x.shape) if dim is None else x.shape[dim]


def aten_sym_stride(x: Tensor, dim: int | None = None) -> Any:
    """A stride, or all of them."""
    return x.stride() if dim is None else x.stride(dim)


def aten_sym_numel(x: Tensor) -> int:
    """How many elements there are."""
    return x.numel()


def aten_sym_storage_offset(x: Tensor) -> int:
    """Where in its memory a tensor begins."""
    return x.storage_offset()


def aten__is_all_true(x: Tensor) -> Tensor:
    """Whether all are true."""
    return x.all()


def aten__is_any_true(x: Tensor) -> Tensor:
    """Whether one is true."""
    return x.any()


def aten__assert_async(
    x: Tensor, assert_msg: str = "Expected Tensor with single nonzero value"
) -> None:
    """An error if a tensor is zero or false."""
    if not bool(x):
        raise ArgumentError(f"[_assert_async] {assert_msg}")


def aten__assert_scalar(x: Any, assert_msg: str) -> None:
    """An error if a number is zero or false."""
    if not x:
        raise ArgumentError(f"[_assert_scalar] {assert_msg}")


def aten__assert_tensor_metadata(
    x: Tensor, size: Any = None, stride: Any = None, dtype: Any = None, **more: Any
) -> None:
    """An error if a tensor has another shape, other strides or another dtype."""
    for name, wanted, found in (
        ("size", size, tuple(x.shape)),
        ("stride", stride, x.stride()),
        ("dtype", dtype, x.dtype),
    ):
        if wanted is not None and (tuple(wanted) if name != "dtype" else wanted) != found:
            raise ArgumentError(
                f"[_assert_tensor_metadata] expects the {name} {wanted}, got {found}"
            )


def aten_sym_constrain_range_for_size(size: Any, *, min: Any = None, max: Any = None) -> None:
    """An error if a number is out of a range."""
    if size < (min or 0) or (max is not None and size > max):
        raise ArgumentError(
            f"[sym_constrain_range_for_size] expects a number from {min or 0} to {max}, got {size}"
        )


aten_sym_constrain_range = aten_sym_constrain_range_for_size


def aten__fft_c2c(x: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Tensor:
    """A Fourier transform of complex numbers; the norm is 0: none, 1: by root n, 2: by n."""
    how = {0: ("backward", "forward"), 1: ("ortho", "ortho"), 2: ("forward", "backward")}
    norm = how[normalization][0 if forward else 1]
    import_module(f"{__name__.partition('.')[0]}.fft")  # which publishes them
    found: Tensor = SPACES["fft"]["fftn" if forward else "ifftn"](x, dim=tuple(dim), norm=norm)
    return found


def aten__pin_memory(x: Tensor, device: Any = None) -> Tensor:
    """The tensor itself: no device reads the host's memory."""
    return x.pin_memory()


def aten_tensordot(x: Tensor, other: Tensor, dims_self: Any, dims_other: Any) -> Tensor:
    """Products summed over dimensions of both."""
    found: Tensor = T["tensordot"](x, other, (list(dims_self), list(dims_other)))
    return found


def aten_threshold_backward(grad: Tensor, x: Tensor, threshold: Any) -> Tensor:
    """The gradient of what a threshold let through."""
    return grad * (x > threshold)


def aten__unique2(
    x: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    """Different elements, where each is found, and how often; all three always."""
    found, inverse, counts = T["unique"](x, sorted, True, True)
    return found, inverse, counts


def aten_max_pool2d_with_indices_backward(
    grad: Tensor,
    x: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    indices: Tensor,
) -> Tensor:
    """The gradient of what was pooled: each goes where its maximum was found.

    As in torch it depends on `x`, with derivatives that are zero.
    """
    flat = x.masked_fill(x.new_ones((), dtype=bool), 0).flatten(-2)
    found: Tensor = flat.scatter_add(-1, indices.flatten(-2), grad.flatten(-2))
    return found.reshape(x.shape)
