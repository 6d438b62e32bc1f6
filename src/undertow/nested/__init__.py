"""Batches of tensors that differ in one size: `nested_tensor`, and what is made of them."""

from __future__ import annotations

from typing import Any

from ..core.register import FUNCTIONS
from ..core.tensor import Tensor
from ..dtypes import DTypeLike
from ..errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from ..layouts import jagged, strided
from .tensor import NestedTensor, ends_of

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]


def nested_tensor(
    tensor_list: Any,
    *,
    dtype: DTypeLike | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> NestedTensor:
    """A nested tensor with copies of tensors, or lists of numbers; a leaf.

    >>> import undertow as ut
    >>> x = ut.nested.nested_tensor([[1.0], [2.0, 3.0]])
    >>> (x * 10).unbind()
    (tensor([10.]), tensor([20., 30.]))
    """
    make = FUNCTIONS["as_tensor"]
    parts = [make(t, dtype=dtype, device=device).detach() for t in tensor_list]
    found = as_nested_tensor(parts, layout=layout)
    return found.requires_grad_() if requires_grad else found


def as_nested_tensor(
    ts: Any, dtype: DTypeLike | None = None, device: Any = None, layout: Any = None
) -> NestedTensor:
    """A nested tensor of tensors, which get its gradients.

    >>> import undertow as ut
    >>> a, b = ut.ones(1, 2, requires_grad=True), ut.ones(3, 2)
    >>> ut.nested.as_nested_tensor([a, b]).sum().backward()
    >>> a.grad
    tensor([[1., 1.]])
    """
    if isinstance(ts, NestedTensor):
        if layout not in (None, ts.layout):
            raise UnsupportedError(
                f"[as_nested_tensor] a nested tensor keeps its layout {ts.layout}, got {layout}; "
                "make it of unbind()"
            )
        found: NestedTensor = FUNCTIONS["as_tensor"](ts, dtype=dtype, device=device)
        return found
    parts = [FUNCTIONS["as_tensor"](t, dtype=dtype, device=device) for t in ts]
    if not parts:
        raise ArgumentError("[as_nested_tensor] needs at least one tensor, got none")
    ranks = {t.ndim for t in parts}
    if len(ranks) > 1 or not parts[0].ndim:
        raise ShapeError(
            "[as_nested_tensor] tensors need the same number of dimensions, at least one, got "
            f"{sorted(ranks)}"
        )
    if len({t.dtype for t in parts}) > 1:
        raise DTypeError("[as_nested_tensor] tensors need one dtype; pass dtype=")
    differ = [d for d in range(parts[0].ndim) if len({t.shape[d] for t in parts}) > 1]
    if len(differ) > 1:
        raise ShapeError(
            f"[as_nested_tensor] tensors may differ in one size, these do in {len(differ)}: "
            f"{[tuple(t.shape) for t in parts[:4]]}; pad the others"
        )
    at = differ[0] if differ else 0
    if at and layout is jagged:
        raise ShapeError(
            f"[as_nested_tensor] with layout=ut.jagged, tensors differ in their first size, these "
            f"do in size {at}"
        )
    values = FUNCTIONS["cat"](parts, at)
    ends = ends_of([t.shape[at] for t in parts], values)
    return NestedTensor(values, ends, at + 1, strided if layout is None else layout)


def nested_tensor_from_jagged(
    values: Tensor,
    offsets: Tensor | None = None,
    lengths: Tensor | None = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> NestedTensor:
    """A nested tensor of parts of `values`, which begin and end at `offsets`, or have `lengths`.

    >>> import undertow as ut
    >>> x = ut.nested.nested_tensor_from_jagged(ut.arange(5), ut.tensor([0, 2, 5]))
    >>> x.unbind()
    (tensor([0, 1]), tensor([2, 3, 4]))
    """
    at = 0 if jagged_dim is None else jagged_dim - 1
    if offsets is None and lengths is None:
        raise ArgumentError("[nested_tensor_from_jagged] pass offsets, or lengths, or both")
    if offsets is None:
        offsets = ends_of(lengths.tolist(), values)  # type: ignore[union-attr]
    elif lengths is not None:  # what lies between the parts is left out
        starts = offsets.tolist()
        parts = [values.narrow(at, s, n) for s, n in zip(starts, lengths.tolist(), strict=False)]
        values = FUNCTIONS["cat"](parts, at)
        offsets = ends_of(lengths.tolist(), values)
    ends = offsets.tolist()
    if not ends or ends[0] != 0 or sorted(ends) != ends or ends[-1] != values.shape[at]:
        raise ArgumentError(
            f"[nested_tensor_from_jagged] offsets rise from 0 to the size {values.shape[at]} of "
            f"the values, got {ends[:6]}"
        )
    return NestedTensor(values, offsets, at + 1, jagged)


def to_padded_tensor(
    input: NestedTensor, padding: float, output_size: Any = None, out: Tensor | None = None
) -> Tensor:
    """One tensor of all parts, the shorter ones filled up with `padding`.

    >>> import undertow as ut
    >>> ut.nested.to_padded_tensor(ut.nested.nested_tensor([[1], [2, 3]]), 0)
    tensor([[1, 0],
            [2, 3]])
    """
    if not isinstance(input, NestedTensor):
        raise DTypeError(f"[to_padded_tensor] expects a nested tensor, got {type(input).__name__}")
    found = input.to_padded_tensor(padding, output_size)
    return found if out is None else out.copy_(found)


def narrow(
    tensor: Tensor, dim: int, start: Any, length: Any, layout: Any = strided
) -> NestedTensor:
    """Parts of a batch, each with a start and a length of its own along `dim`, which is 1.

    >>> import undertow as ut
    >>> x = ut.arange(6).reshape(2, 3)
    >>> ut.nested.narrow(x, 1, ut.tensor([0, 1]), ut.tensor([1, 2]), layout=ut.jagged).unbind()
    (tensor([0]), tensor([4, 5]))
    """
    if dim != 1:
        raise ArgumentError(f"[narrow] of a batch is along dim 1, got {dim}")
    batch = tensor.shape[0]
    starts = [start] * batch if isinstance(start, int) else start.tolist()
    lengths = [length] * batch if isinstance(length, int) else length.tolist()
    parts = [
        tensor[i].narrow(0, s, n) for i, (s, n) in enumerate(zip(starts, lengths, strict=True))
    ]
    return as_nested_tensor(parts, layout=layout)


def masked_select(tensor: Tensor, mask: Tensor) -> NestedTensor:
    """The elements of each row where a mask is True.

    >>> import undertow as ut
    >>> x = ut.tensor([[1, 2], [3, 4]])
    >>> ut.nested.masked_select(x, x > 1).unbind()
    (tensor([2]), tensor([3, 4]))
    """
    mask = mask.expand(tensor.shape)
    if tensor.ndim != 2:
        raise ShapeError(f"[masked_select] expects a matrix, got shape {tensor.shape}")
    values = FUNCTIONS["masked_select"](tensor, mask)
    return NestedTensor(values, ends_of(mask.sum(1).tolist(), values), 1, jagged)
