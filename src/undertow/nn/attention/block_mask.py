"""`BlockMask`: which blocks of a score matrix hold anything, and the function that masks within.

Here the function is what counts: attention asks it for all positions. The blocks are kept for who
reads them, or makes other masks of them.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable
from typing import Any, NoReturn

from ...core.register import FUNCTIONAL, FUNCTIONS
from ...core.tensor import Tensor
from ...errors import ArgumentError, ShapeError, UnsupportedError
from .positions import at_all

MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
BLOCK = 128


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The `mask_mod` that lets every query look at every key."""
    return FUNCTIONS["ones"]((), dtype="bool", device=batch.device)


def _sliced_mask_mod_error(
    batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor
) -> NoReturn:
    raise ArgumentError(
        "[BlockMask] a mask that was sliced has lost its mask_mod, whose positions may be others "
        "now; set sliced.mask_mod from the mask that it is a part of"
    )


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """The `mask_mod` that allows what all of these allow.

    >>> from undertow.nn.attention.flex_attention import and_masks, create_mask
    >>> near = and_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: q - k < 2)
    >>> create_mask(near, None, None, 3, 3)[0, 0].int().tolist()
    [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    """
    _check_mods("and_masks", mask_mods)

    def and_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = noop_mask(b, h, q_idx, kv_idx)
        for mask in mask_mods:
            result = result & mask(b, h, q_idx, kv_idx)
        return result

    return and_mask


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """The `mask_mod` that allows what any of these allows.

    >>> from undertow.nn.attention.flex_attention import create_mask, or_masks
    >>> either = or_masks(lambda b, h, q, k: q == k, lambda b, h, q, k: k == 0)
    >>> create_mask(either, None, None, 2, 3)[0, 0].int().tolist()
    [[1, 0, 0], [1, 1, 0]]
    """
    _check_mods("or_masks", mask_mods)

    def or_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = ~noop_mask(b, h, q_idx, kv_idx)
        for mask in mask_mods:
            result = result | mask(b, h, q_idx, kv_idx)
        return result

    return or_mask


def _check_mods(op: str, mods: tuple[Any, ...]) -> None:
    for mod in mods:
        if not callable(mod):
            raise ArgumentError(f"[{op}] expects functions of (b, h, q, k), got {mod!r}")


def takes_score(op: str, fn: Callable[..., Any]) -> bool:
    """Whether a function is a `score_mod`, of five arguments, rather than a `mask_mod` of four."""
    needed = [
        p
        for p in inspect.signature(fn).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if len(needed) not in (4, 5):
        raise ArgumentError(
            f"[{op}] expects a function of (b, h, q, k), or of a score before them, got one of "
            f"{len(needed)} arguments"
        )
    return len(needed) == 5


def create_mask(
    mod_fn: Callable[..., Tensor],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
) -> Tensor:
    """The boolean mask of a `mask_mod`, or where a `score_mod` does not give minus infinity.

    >>> from undertow.nn.attention.flex_attention import create_mask
    >>> create_mask(lambda b, h, q, k: q >= k, 1, 1, 2, 2)[0, 0].tolist()
    [[True, False], [True, True]]
    """
    sizes = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    like = FUNCTIONS["empty"](0, device=device)
    if not takes_score("create_mask", mod_fn):
        return at_all(mod_fn, sizes, None, like).expand(sizes)
    zeros = FUNCTIONS["zeros"](sizes, device=device)
    return ~FUNCTIONS["isneginf"](at_all(mod_fn, sizes, zeros, like))


def create_block_mask(
    mask_mod: MaskMod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = BLOCK,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:
    """The blocks in which a `mask_mod` allows anything, for `flex_attention`.

    >>> from undertow.nn.attention.flex_attention import create_block_mask
    >>> mask = create_block_mask(lambda b, h, q, k: q >= k, 1, 1, 256, 256)
    >>> mask.shape, mask.kv_num_blocks.tolist(), mask.full_kv_num_blocks.tolist()
    ((1, 1, 256, 256), [[[1, 1]]], [[[0, 1]]])
    """
    if takes_score("create_block_mask", mask_mod):
        raise ArgumentError(
            "[create_block_mask] expects a mask_mod of (b, h, q, k), got a score_mod"
        )
    _no_order(compute_dq_write_order)
    rows, columns = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    mask = FUNCTIONAL["pad"](mask, (0, -KV_LEN % columns, 0, -Q_LEN % rows))
    b, h, q, k = mask.shape
    count = mask.reshape(b, h, q // rows, rows, k // columns, columns).sum((3, 5))
    full = count == rows * columns if separate_full_blocks else count < 0
    partly = _ordered((count > 0) & ~full)
    whole: tuple[Any, Any] = _ordered(full) if separate_full_blocks else (None, None)
    return BlockMask.from_kv_blocks(
        *(*partly, *whole), (rows, columns), mask_mod, seq_lengths=(Q_LEN, KV_LEN)
    )


def _no_order(wanted: Any) -> None:
    if wanted is not None and wanted is not False:
        raise UnsupportedError(
            "[BlockMask] the order in which torch's kernels write gradients has no meaning here; "
            "results are deterministic without it"
        )


def _ordered(dense: Tensor) -> tuple[Tensor, Tensor]:
    """How many blocks a row has, and the blocks, those that it has first."""
    dense = dense.int()
    order = FUNCTIONS["argsort"](dense, dim=-1, descending=True, stable=True)
    return dense.sum(-1).int(), order.int()


def _dense(counts: Tensor, indices: Tensor) -> Tensor:
    """The inverse of `_ordered`."""
    columns = indices.shape[-1]
    steps = FUNCTIONS["arange"](columns, device=indices.device)
    has = (steps < counts.unsqueeze(-1)).int()
    return FUNCTIONS["zeros_like"](has).scatter_reduce(-1, indices.long(), has, "amax")


_TENSORS = (
    *("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices"),
    *("q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices"),
)


class BlockMask:
    """Which blocks of the scores hold anything, made by `create_block_mask`.

    >>> from undertow.nn.attention.flex_attention import create_block_mask
    >>> mask = create_block_mask(lambda b, h, q, k: q >= k, 1, 1, 4, 4, BLOCK_SIZE=2)
    >>> mask.to_dense().tolist(), mask.sparsity()
    ([[[[1, 0], [1, 1]]]], 25.0)
    """

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (BLOCK, BLOCK),
        mask_mod: MaskMod = noop_mask,
        *,
        dq_write_order: Any = None,
        dq_write_order_full: Any = None,
        dq_kv_order: Any = None,
        dq_kv_order_spt: bool | None = None,
    ) -> None:
        if kv_indices.ndim < 2:
            raise ShapeError(
                f"[BlockMask] kv_indices needs rows and columns, got shape {kv_indices.shape}"
            )
        for one, other in zip(_TENSORS[2::4], _TENSORS[3::4], strict=True):
            given = locals()
            if (given[one] is None) != (given[other] is None):
                raise ArgumentError(f"[BlockMask] pass both of {one} and {other}, or none")
        _no_order(dq_write_order)
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod
        self.dq_write_order = self.dq_write_order_full = self.dq_kv_order = None
        self.dq_kv_order_spt = dq_kv_order_spt

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = BLOCK,
        mask_mod: MaskMod | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
        **order: Any,
    ) -> BlockMask:
        """A mask from the blocks of keys that each block of queries looks at."""
        if kv_indices.ndim < 2:
            raise ShapeError(
                f"[BlockMask] kv_indices needs rows and columns, got shape {kv_indices.shape}"
            )
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1])
        turned: tuple[Any, Any, Any, Any] = (None, None, None, None)
        if compute_q_blocks:
            full: tuple[Any, Any] = (None, None)
            if full_kv_num_blocks is not None and full_kv_indices is not None:
                full = _ordered(_dense(full_kv_num_blocks, full_kv_indices).mT)
            turned = (*_ordered(_dense(kv_num_blocks, kv_indices).mT), *full)
        return cls(
            seq_lengths,
            *(kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices),
            *turned,
            BLOCK_SIZE=size,
            mask_mod=noop_mask if mask_mod is None else mask_mod,
            **order,
        )

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """Lengths, tensors, sizes of blocks and the function, in torch's order."""
        lengths: tuple[Any, ...] = self.seq_lengths if flatten else (self.seq_lengths,)
        sizes: tuple[Any, ...] = self.BLOCK_SIZE if flatten else (self.BLOCK_SIZE,)
        tensors = [getattr(self, name) for name in _TENSORS]
        order = (None, None, None, self.dq_kv_order_spt)
        return (*lengths, *tensors, *order, *sizes, self.mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """Batches and heads, and the lengths of queries and keys."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """How many scores there are, masked ones included."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """How many per cent of the blocks are left out."""
        blocks = self.kv_num_blocks.sum().item()
        if self.full_kv_num_blocks is not None:
            blocks += self.full_kv_num_blocks.sum().item()
        return 100 * (1 - blocks * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self) -> Tensor:
        """1 for every block that holds anything, 0 for the others."""
        found = _dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            found = found | _dense(self.full_kv_num_blocks, self.full_kv_indices)
        return found

    def __getitem__(self, index: Any) -> BlockMask:
        index = index if isinstance(index, tuple) else (index,)
        sizes = self.kv_num_blocks.shape[:3]
        padded = (*index, slice(None), slice(None), slice(None))[:3]
        at = tuple(
            slice(i % n, i % n + 1) if isinstance(i, int) else i
            for i, n in zip(padded, sizes, strict=True)
        )
        given = {name: getattr(self, name) for name in _TENSORS[:4]}
        parts: dict[str, Any] = {n: None if t is None else t[at] for n, t in given.items()}
        return self.from_kv_blocks(
            **parts,
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=_sliced_mask_mod_error,
            seq_lengths=self.seq_lengths,
            compute_q_blocks=self.q_indices is not None,
        )

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The upper left corner of the mask, for shorter queries and keys."""
        rows = -(-new_q_len // self.BLOCK_SIZE[0])
        columns = -(-new_kv_len // self.BLOCK_SIZE[1])
        parts: list[Any] = []
        for counts, indices in (
            (self.kv_num_blocks, self.kv_indices),
            (self.full_kv_num_blocks, self.full_kv_indices),
        ):
            if counts is None or indices is None:
                parts += [None, None]
            else:
                parts += _ordered(_dense(counts, indices)[..., :rows, :columns])
        return self.from_kv_blocks(
            **dict(zip(_TENSORS[:4], parts, strict=True)),
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=self.mask_mod,
            seq_lengths=(new_q_len, new_kv_len),
            compute_q_blocks=self.q_indices is not None,
        )

    def to(self, device: Any) -> BlockMask:
        """The same mask with its tensors on a device."""
        given = {name: getattr(self, name) for name in _TENSORS}
        moved: dict[str, Any] = {n: None if t is None else t.to(device) for n, t in given.items()}
        return BlockMask(
            self.seq_lengths, **moved, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod
        )

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """A drawing of the blocks: full, partly, or empty."""
        dense = self.to_dense().float()
        *batch, rows, columns = dense.shape
        most = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        down, across = (
            max(1, -(-n // m)) if m > 0 else 1 for n, m in zip((rows, columns), most, strict=True)
        )
        found = []
        for i, place in enumerate(itertools.product(*map(range, batch))):
            if i == limit:
                found.append("...\nTo print out more, set BlockMask.to_string(limit=N)")
                break
            text = f"{place}\n"
            for r in range(0, rows, down):
                for c in range(0, columns, across):
                    share = dense[place][r : r + down, c : c + across].mean().item()
                    text += 2 * ("█" if share == 1 else "░" if share else " ")
                text += "\n"
            found.append(text)
        return "\n".join(found)

    def __str__(self) -> str:
        drawn = self.to_string().strip()
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{drawn}\n)"

    def __repr__(self) -> str:
        shapes = {name: getattr(self, name) for name in _TENSORS}
        lines = [f"    {n}={None if t is None else t.shape},\n" for n, t in shapes.items()]
        name = getattr(self.mask_mod, "__name__", self.mask_mod)
        return (
            f"BlockMask(\n{''.join(lines)}    BLOCK_SIZE={self.BLOCK_SIZE},\n"
            f"    shape={self.shape},\n    sparsity={self.sparsity():.2f}%,\n    mask_mod={name}\n)"
        )
