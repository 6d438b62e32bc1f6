"""`flex_attention`: functions of positions, masks of blocks, gradients of any order."""

from __future__ import annotations

import math
from typing import Any

import pytest

import undertow as ut
from undertow.errors import ArgumentError, ShapeError, UndertowError, UnsupportedError
from undertow.nn.attention import positions
from undertow.nn.attention.experimental._paged_attention import PagedAttention
from undertow.nn.attention.flex_attention import (
    AuxRequest,
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    noop_mask,
    or_masks,
)
from undertow.nn.attention.varlen import AuxRequest as VarlenRequest
from undertow.nn.attention.varlen import varlen_attn, varlen_attn_out
from undertow.nn.functional import scaled_dot_product_attention as attend


def tensors(*shape: int, count: int = 3, seed: int = 0) -> list[ut.Tensor]:
    ut.manual_seed(seed)
    return [ut.randn(shape, dtype=ut.float64) for _ in range(count)]


def causal(b: Any, h: Any, q: Any, k: Any) -> Any:
    return q >= k


@pytest.mark.parametrize("mod", ["plain", "two steps", "a branch"])
def test_functions_of_positions(mod: str) -> None:
    """Whatever way is taken, the answer is that of every position by itself."""
    table = ut.arange(3 * 24.0).reshape(3, 24)
    mods = {
        "plain": lambda b, h, q, k: table[h, q + k] + b,
        "two steps": lambda b, h, q, k: table[h][q + k] * (b + 1),
        "a branch": lambda b, h, q, k: q * 1.0 if q.item() > 2 else k * 2.0,
    }
    fn, sizes = mods[mod], (2, 3, 5, 7)
    found = positions.at_all(fn, sizes, None, table)
    for b in range(2):
        for h in range(3):
            for q in range(5):
                for k in range(7):
                    at = [ut.tensor(i) for i in (b, h, q, k)]
                    assert found[b, h, q, k].item() == fn(*at).item()


def test_without_functions_it_is_plain_attention() -> None:
    q, k, v = tensors(2, 3, 5, 4)
    ut.testing.assert_close(flex_attention(q, k, v), attend(q, k, v))
    ut.testing.assert_close(flex_attention(q, k, v, scale=0.3), attend(q, k, v, scale=0.3))
    mask = create_block_mask(causal, 2, 3, 5, 5)
    ut.testing.assert_close(
        flex_attention(q, k, v, block_mask=mask), attend(q, k, v, is_causal=True)
    )
    shared = flex_attention(q, k[:, :1], v[:, :1], enable_gqa=True)
    ut.testing.assert_close(shared, attend(q, k[:, :1], v[:, :1], enable_gqa=True))


def test_gradients_of_any_order_and_of_captured_tensors() -> None:
    q, k, v = (t.requires_grad_() for t in tensors(1, 2, 3, 2))
    bias = ut.randn(2, 5, dtype=ut.float64, requires_grad=True)
    slope = ut.tensor(0.7, dtype=ut.float64, requires_grad=True)
    mask = create_block_mask(causal, None, None, 3, 3)

    def run(q: Any, k: Any, v: Any, bias: Any, slope: Any) -> Any:
        def mod(score: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
            return ut.tanh(score * slope) + bias[h, i - j + 2]

        out, aux = flex_attention(q, k, v, mod, mask, return_aux=AuxRequest(lse=True))
        return out, aux.lse

    assert ut.autograd.gradcheck(run, (q, k, v, bias, slope))
    assert ut.autograd.gradgradcheck(run, (q, k, v, bias, slope))
    fused = lambda q, k, v: flex_attention(q, k, v, block_mask=mask)
    assert ut.autograd.gradcheck(fused, (q, k, v))
    assert ut.autograd.gradgradcheck(fused, (q, k, v))


@pytest.mark.parametrize("start", [0.0, 1.0])
def test_tables_of_equal_elements_get_their_gradients(start: float) -> None:
    """A sum over all positions at once has the same value as single ones where all are zero."""
    scores = ut.zeros(1, 2, 3, 3, dtype=ut.float64)
    left = ut.full((3, 4), start, dtype=ut.float64, requires_grad=True)
    (right,) = tensors(3, 4, count=1)
    (weight,) = tensors(1, 2, 3, 3, count=1)
    mod = lambda s, b, h, i, j: s + (left[i] * right[j]).sum()
    found = positions.at_all(mod, (1, 2, 3, 3), scores, scores)
    wanted = scores + left @ right.T
    ut.testing.assert_close(found, wanted)
    (g,) = ut.autograd.grad(found, left, weight)
    ut.testing.assert_close(g, ut.autograd.grad(wanted, left, weight)[0])


def test_queries_that_may_look_at_nothing_get_zeros() -> None:
    q, k, v = tensors(1, 1, 3, 2)
    mask = create_block_mask(lambda b, h, i, j: i > j, 1, 1, 3, 3)
    for mod in (None, lambda s, b, h, i, j: s * 2):
        out, aux = flex_attention(q, k, v, mod, mask, return_aux=AuxRequest(True, True))
        assert out[0, 0, 0].tolist() == [0, 0]
        assert aux.lse[0, 0, 0].item() == aux.max_scores[0, 0, 0].item() == -math.inf
    assert flex_attention(q, k, v, None, mask)[0, 0, 0].tolist() == [0, 0]


def test_masks_of_blocks() -> None:
    mask = create_block_mask(causal, 2, 1, 6, 9, BLOCK_SIZE=(2, 4))
    assert mask.shape == (2, 1, 6, 9)
    dense = create_mask(causal, 2, 1, 6, 9)
    assert dense.shape == (2, 1, 6, 9)
    assert mask.to_dense()[1, 0].tolist() == [[1, 0, 0], [1, 0, 0], [1, 1, 0]]
    assert mask.full_kv_num_blocks[0, 0].tolist() == [0, 0, 1]
    assert mask.q_num_blocks[0, 0].tolist() == [2, 1, 0]
    assert mask.numel() == 108
    assert "sparsity" in str(mask)
    assert "mask_mod=causal" in repr(mask)
    assert mask._adjust(2, 4).shape == (2, 1, 2, 4)
    assert mask.to("cpu").to_dense().tolist() == mask.to_dense().tolist()
    assert mask[:, :, ut.tensor([2])].kv_num_blocks.shape == (2, 1, 1)
    assert mask[-1].kv_num_blocks.shape == (1, 1, 3)
    assert len(mask.as_tuple()) == 17
    assert create_mask(noop_mask, 1, 1, 2, 2).all()
    both = and_masks(causal, lambda b, h, q, k: q - k < 2)
    assert create_mask(both, 1, 1, 3, 3)[0, 0].int().tolist() == [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    either = or_masks(lambda b, h, q, k: q == k, lambda b, h, q, k: k == 0)
    assert create_mask(either, 1, 1, 2, 3)[0, 0].int().tolist() == [[1, 0, 0], [1, 1, 0]]
    scored = create_mask(lambda s, b, h, q, k: ut.where(q >= k, s, -math.inf), 1, 1, 2, 2)
    assert scored[0, 0].int().tolist() == [[1, 0], [1, 1]]


def test_errors_say_what_to_do() -> None:
    q, k, v = tensors(1, 2, 3, 4)
    mask = create_block_mask(causal, 1, 2, 3, 3)
    with pytest.raises(ArgumentError, match=r"set sliced\.mask_mod from"):
        flex_attention(q, k, v, block_mask=mask[0])
    with pytest.raises(ArgumentError, match=r"made for the lengths \(3, 3\), got \(2, 3\)"):
        flex_attention(q[:, :, :2], k, v, block_mask=mask)
    with pytest.raises(ArgumentError, match="enable_gqa"):
        flex_attention(q, k[:, :1], v[:, :1])
    with pytest.raises(ShapeError, match="expects query"):
        flex_attention(q[0], k[0], v[0])
    with pytest.raises(ArgumentError, match="mask_mod"):
        create_block_mask(lambda s, b, h, q, k: s, 1, 1, 2, 2)
    with pytest.raises(UndertowError, match="functions"):
        and_masks(3)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="order"):
        create_block_mask(causal, 1, 1, 2, 2, compute_dq_write_order=True)
    with pytest.raises(UnsupportedError, match="one tensor"):
        PagedAttention(1, 2, 3)
    assert isinstance(mask, BlockMask)


@pytest.mark.parametrize("window", [(-1, -1), (-1, 0), (1, 0), (1, 1)])
def test_packed_sequences(window: tuple[int, int]) -> None:
    q, k, v = tensors(7, 2, 4)
    ends = ut.tensor([0, 3, 7])
    out, lse = varlen_attn(
        q, k, v, ends, ends, 4, 4, window_size=window, return_aux=VarlenRequest(lse=True)
    )
    assert lse.shape == (2, 7)
    for low, high in [(0, 3), (3, 7)]:
        parts = [t[low:high].transpose(0, 1) for t in (q, k, v)]
        n = high - low
        far = ut.arange(n) - ut.arange(n)[:, None]
        allowed = ut.ones(n, n, dtype=ut.bool)
        if window[0] >= 0:
            allowed = allowed & (far >= -window[0])
        if window[1] >= 0:
            allowed = allowed & (far <= window[1])
        ut.testing.assert_close(out[low:high].transpose(0, 1), attend(*parts, allowed))
    into = ut.zeros(7, 2, 4, dtype=ut.float64)
    assert varlen_attn_out(into, q, k, v, ends, ends, 4, 4, window_size=window) is into
    ut.testing.assert_close(into, out)


def test_names_of_kernels() -> None:
    q, k, v = tensors(1, 2, 3, 4)
    out, weights = ut._scaled_dot_product_attention_math(q, k, v, is_causal=True)
    ut.testing.assert_close(out, attend(q, k, v, is_causal=True))
    ut.testing.assert_close(weights.sum(-1), ut.ones(1, 2, 3, dtype=ut.float64))
    other, sums = ut._scaled_dot_product_flash_attention_for_cpu(q, k, v)
    ut.testing.assert_close(other, attend(q, k, v))
    ut.testing.assert_close(sums, (q @ k.mT / 2).logsumexp(-1))
    with pytest.raises(UnsupportedError, match="another device"):
        ut._scaled_dot_product_flash_attention(q, k, v)
