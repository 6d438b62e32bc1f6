"""Sequences of several lengths: padded, packed, and back; see Note [packing] in `ops/packing`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ... import dtypes
from ...core.register import FUNCTIONAL, FUNCTIONS
from ...core.tensor import Tensor
from ...errors import ArgumentError, ShapeError
from ...ops.nn.packing import Packing

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _Fields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Fields):
    """The rows of a batch of sequences, step by step, and how many sequences have each step.

    `pack_padded_sequence` and `pack_sequence` make them. `batch_sizes` stays on the CPU.

    >>> import undertow as ut
    >>> from undertow.nn.utils.rnn import pack_sequence
    >>> packed = pack_sequence([ut.tensor([1, 2, 3]), ut.tensor([4, 5])])
    >>> packed.data, packed.batch_sizes
    (tensor([1, 4, 2, 5, 3]), tensor([2, 2, 1]))
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise ArgumentError(
                    "[PackedSequence] expects data and batch_sizes; pack_sequence makes one from "
                    "sequences"
                )
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ArgumentError(
                f"[PackedSequence] batch_sizes should always be on CPU, got {batch_sizes.device}; "
                "pack_sequence makes them"
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same with `data.to(...)`; itself where that changes nothing."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        order, back = (
            None if t is None else t.to(data.device)
            for t in (self.sorted_indices, self.unsorted_indices)
        )
        return type(self)(data, self.batch_sizes, order, back)

    def cpu(self) -> PackedSequence:
        """The same on the CPU."""
        return self.to("cpu")

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same on a CUDA device."""
        return self.to(*(args or ("cuda",)), **kwargs)

    def pin_memory(self) -> PackedSequence:
        """Itself: there is no device that would copy from it faster."""
        return self

    def is_pinned(self) -> bool:
        """False."""
        return False

    @property
    def is_cuda(self) -> bool:
        """Whether the data are on a CUDA device."""
        return bool(self.data.device.type == "cuda")

    def double(self) -> PackedSequence:
        """The data as float64."""
        return self.to(dtypes.float64)

    def float(self) -> PackedSequence:
        """The data as float32."""
        return self.to(dtypes.float32)

    def half(self) -> PackedSequence:
        """The data as float16."""
        return self.to(dtypes.float16)

    def long(self) -> PackedSequence:
        """The data as int64."""
        return self.to(dtypes.int64)

    def int(self) -> PackedSequence:
        """The data as int32."""
        return self.to(dtypes.int32)

    def short(self) -> PackedSequence:
        """The data as int16."""
        return self.to(dtypes.int16)

    def char(self) -> PackedSequence:
        """The data as int8."""
        return self.to(dtypes.int8)

    def byte(self) -> PackedSequence:
        """The data as uint8."""
        return self.to(dtypes.uint8)


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes another; None of None.

    >>> import undertow as ut
    >>> ut.nn.utils.rnn.invert_permutation(ut.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    found: Tensor = permutation.argsort()
    return found


def pack_padded_sequence(
    input: Tensor,
    lengths: Tensor | Sequence[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """A padded batch (steps, batch, …), or (batch, steps, …) with `batch_first`, packed.

    The sequences must be sorted, the longest first, unless `enforce_sorted` is False: then they are
    sorted here, and `pad_packed_sequence` undoes that.

    >>> import undertow as ut
    >>> from undertow.nn.utils.rnn import pack_padded_sequence
    >>> padded = ut.tensor([[1, 0, 0], [2, 3, 4]])
    >>> packed = pack_padded_sequence(padded, [1, 3], batch_first=True, enforce_sorted=False)
    >>> packed.data, packed.batch_sizes, packed.sorted_indices
    (tensor([2, 1, 3, 4]), tensor([2, 1, 1]), tensor([1, 0]))
    """
    op = "pack_padded_sequence"
    if input.ndim < 2:
        raise ShapeError(f"[{op}] input must be (steps, batch, …), got shape {input.shape}")
    x = input.transpose(0, 1) if batch_first else input
    found = lengths.tolist() if isinstance(lengths, Tensor) else [*lengths]
    if len(found) != x.shape[1]:
        raise ShapeError(
            f"[{op}] Expected `len(lengths)` to be equal to batch_size {x.shape[1]}, got "
            f"{len(found)}"
        )
    if not found or min(found) <= 0:
        raise ArgumentError(
            f"[{op}] Length of all samples has to be greater than 0, got lengths {found}"
        )
    if max(found) > x.shape[0]:
        raise ArgumentError(
            f"[{op}] a length of {max(found)} is more than the {x.shape[0]} steps of the input"
        )
    order = None
    if enforce_sorted:
        if any(a < b for a, b in itertools.pairwise(found)):
            raise ArgumentError(
                f"[{op}] `lengths` array must be sorted in decreasing order when `enforce_sorted` "
                f"is True, got {found}; pass enforce_sorted=False to have that done"
            )
    else:
        turn = sorted(range(len(found)), key=lambda i: -found[i])
        found = [found[i] for i in turn]
        order = FUNCTIONS["tensor"](turn, dtype=dtypes.int64, device=input.device)
        x = x.index_select(1, order)
    sizes = [sum(n > t for n in found) for t in range(found[0])]
    batch_sizes = FUNCTIONS["tensor"](sizes, dtype=dtypes.int64, device="cpu")
    packing = Packing(op, batch_sizes, None, input)
    return PackedSequence(packing.packed(x[: found[0]]), batch_sizes, order)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """A padded batch of packed sequences, in the order that they had, and their lengths.

    >>> import undertow as ut
    >>> from undertow.nn.utils.rnn import pack_sequence, pad_packed_sequence
    >>> packed = pack_sequence([ut.tensor([1]), ut.tensor([2, 3])], enforce_sorted=False)
    >>> pad_packed_sequence(packed, batch_first=True)
    (tensor([[1, 0],
            [2, 3]]), tensor([1, 2]))
    """
    op = "pad_packed_sequence"
    data, batch_sizes, _, back = sequence
    packing = Packing(op, batch_sizes, data.shape[0], data)
    if total_length is not None and total_length < packing.steps:
        raise ArgumentError(
            f"[{op}] Expected total_length to be at least the length of the longest sequence in "
            f"input, but got total_length={total_length} and max sequence length being "
            f"{packing.steps}"
        )
    out, lengths = packing.padded(data, padding_value, total_length), packing.lengths.to("cpu")
    if back is not None:
        out, lengths = out.index_select(1, back), lengths[back.to("cpu")]
    return out.transpose(0, 1) if batch_first else out, lengths


def pad_sequence(
    sequences: Tensor | Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences (length, …) in one array (longest, batch, …), shorter ones filled up.

    >>> import undertow as ut
    >>> from undertow.nn.utils.rnn import pad_sequence
    >>> pad_sequence([ut.tensor([1, 2]), ut.tensor([3])], batch_first=True)
    tensor([[1, 2],
            [3, 0]])
    """
    op = "pad_sequence"
    if not isinstance(sequences, Iterable):
        raise ArgumentError(
            f"[{op}] Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    if padding_side not in ("left", "right"):
        raise ArgumentError(f"[{op}] padding_side must be left or right, got {padding_side!r}")
    given = list(sequences)
    if not given:
        raise ArgumentError(f"[{op}] received an empty list of sequences")
    rest = given[0].shape[1:]
    for t in given:
        if not t.ndim or t.shape[1:] != rest:
            raise ShapeError(
                f"[{op}] all sequences must be (length, …) and alike but for their length, got "
                f"shapes {given[0].shape} and {t.shape}"
            )
    lengths = [t.shape[0] for t in given]
    longest, gap = max(lengths), max(lengths) - min(lengths)
    blank = given[0].detach()[:0]
    blank = FUNCTIONAL["pad"](blank, [0, 0] * len(rest) + [0, gap], value=padding_value)
    pieces = []  # one after the other, each with what it is filled up with
    for t, length in zip(given, lengths, strict=True):
        filling = [blank[: longest - length]] if length < longest else []
        pieces += [t, *filling] if padding_side == "right" else [*filling, t]
    found: Tensor = FUNCTIONS["cat"](pieces).reshape(len(given), longest, *rest)
    return found if batch_first else found.transpose(0, 1).contiguous()


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False
) -> list[Tensor]:
    """The sequences of a padded batch, each with its own length.

    >>> import undertow as ut
    >>> ut.nn.utils.rnn.unpad_sequence(ut.tensor([[1, 2], [3, 0]]), [2, 1], batch_first=True)
    [tensor([1, 2]), tensor([3])]
    """
    x = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    found = lengths.tolist() if isinstance(lengths, Tensor) else [*lengths]
    if len(found) != x.shape[0]:
        raise ShapeError(
            f"[unpad_sequence] {x.shape[0]} sequences need as many lengths, got {len(found)}"
        )
    return [row[:n].clone() for row, n in zip(x.unbind(0), found, strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences (length, …), packed; the longest first unless `enforce_sorted` is False.

    >>> import undertow as ut
    >>> ut.nn.utils.rnn.pack_sequence([ut.tensor([1, 2]), ut.tensor([3])]).data
    tensor([1, 3, 2])
    """
    lengths = [t.shape[0] for t in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences that were packed, in the order that they had.

    >>> import undertow as ut
    >>> from undertow.nn.utils.rnn import pack_sequence, unpack_sequence
    >>> unpack_sequence(pack_sequence([ut.tensor([1, 2]), ut.tensor([3])]))
    [tensor([1, 2]), tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
