"""Nested tensors: parts of different lengths, elementwise, summed, multiplied, attended to."""

from __future__ import annotations

from typing import Any

import pytest

import undertow as ut
import undertow.nn.functional as F
from undertow.errors import ArgumentError, DimError, ShapeError, UnsupportedError


def parts(*lengths: int, rest: tuple[int, ...] = (3,), seed: int = 0) -> list[ut.Tensor]:
    ut.manual_seed(seed)
    return [ut.randn(n, *rest, dtype=ut.float64) for n in lengths]


def nest(*lengths: int, **options: Any) -> Any:
    return ut.nested.nested_tensor(parts(*lengths, **options), layout=ut.jagged)


def same(x: Any, expected: list[ut.Tensor]) -> None:
    assert x.is_nested
    for a, b in zip(x.unbind(), expected, strict=True):
        ut.testing.assert_close(a, b)


def test_what_it_is() -> None:
    x = nest(2, 4)
    assert x.shape[0] == len(x) == x.size(0) == 2
    assert x.shape[2] == x.size(-1) == 3
    assert x.shape[1] == x.size(1)
    assert x.size(1) != nest(2, 4).size(1)
    assert (x.ndim, x.numel(), x.dtype, x.layout) == (3, 18, ut.float64, ut.jagged)
    assert x.offsets().tolist() == [0, 2, 6]
    assert x.lengths() is None
    assert x[1].shape == (4, 3)
    assert [p.shape[0] for p in x] == [2, 4]
    assert repr(x).startswith(f"NestedTensor(size=(2, {x.size(1)!r}, 3), offsets=tensor(")
    strided = ut.nested.nested_tensor([[1.0, 2.0], [3.0]])
    assert strided.layout is ut.strided
    assert repr(strided) == "nested_tensor([\n  tensor([1., 2.]),\n  tensor([3.])\n])"
    with pytest.raises(ArgumentError, match="irregular"):
        strided.size(1)
    last = ut.nested.nested_tensor([ut.ones(2, 3), ut.ones(2, 5)])  # in the last size
    assert last.size(1) == 2
    assert last.to_padded_tensor(0.0).shape == (2, 2, 5)


def test_making() -> None:
    values = ut.arange(10.0).reshape(5, 2)
    x = ut.nested.nested_tensor_from_jagged(values, ut.tensor([0, 2, 5]))
    assert x.values() is values
    y = ut.nested.nested_tensor_from_jagged(values, lengths=ut.tensor([4, 1]))
    assert [len(p) for p in y.unbind()] == [4, 1]
    z = ut.nested.nested_tensor_from_jagged(values, ut.tensor([0, 2, 5]), ut.tensor([1, 2]))
    same(z, [values[:1], values[2:4]])
    dense = ut.arange(12).reshape(2, 6)
    starts, counts = ut.tensor([1, 0]), ut.tensor([2, 5])
    same(
        ut.nested.narrow(dense, 1, starts, counts, layout=ut.jagged), [dense[0, 1:3], dense[1, :5]]
    )
    same(ut.nested.masked_select(dense, dense % 2 == 0), [dense[0, ::2], dense[1, ::2]])
    assert ut.nested.as_nested_tensor(x, dtype=ut.float64).dtype is ut.float64
    with pytest.raises(ShapeError, match="may differ in one size"):
        ut.nested.nested_tensor([ut.ones(1, 2), ut.ones(2, 3)])
    with pytest.raises(ArgumentError, match="rise from 0"):
        ut.nested.nested_tensor_from_jagged(values, ut.tensor([0, 2]))
    with pytest.raises(ArgumentError, match="at least one"):
        ut.nested.nested_tensor([])


def test_elements() -> None:
    a, b = parts(2, 4), parts(2, 4, seed=1)
    x, y = (ut.nested.as_nested_tensor(t, layout=ut.jagged) for t in (a, b))
    same(x + y * 2 - 1, [p + q * 2 - 1 for p, q in zip(a, b, strict=True)])
    same(ut.exp(x), [p.exp() for p in a])
    same(2 / F.gelu(-x), [2 / F.gelu(-p) for p in a])
    same(ut.where(x > 0, x, y), [ut.where(p > 0, p, q) for p, q in zip(a, b, strict=True)])
    same(ut.ones(3) * x, a)
    each = ut.rand(2, 1, 3)
    same(x * each, [p * e for p, e in zip(a, each, strict=True)])
    padded = ut.rand(2, 4, 3)
    same(x + padded, [p + q[: len(p)] for p, q in zip(a, padded, strict=True)])
    same(x.float(), [p.float() for p in a])
    assert x.to(ut.float32).dtype is ut.float32
    assert ut.equal(x, x.clone())
    with pytest.raises(ShapeError, match="same parts"):
        _ = x + nest(3, 3)
    with pytest.raises(UnsupportedError, match="unbind"):
        ut.sort(x)
    with pytest.raises(UnsupportedError, match="to_padded_tensor"):
        x.sort()
    with pytest.raises(AttributeError):
        x.nothing  # noqa: B018


def test_dimensions() -> None:
    a = parts(2, 4, rest=(6,))
    x = ut.nested.as_nested_tensor(a, layout=ut.jagged)
    same(
        x.unflatten(-1, [2, 3]).transpose(1, 2),
        [p.unflatten(-1, [2, 3]).transpose(0, 1) for p in a],
    )
    back = x.unflatten(-1, [2, 3]).transpose(1, 2).transpose(1, 2).flatten(-2)
    same(back, a)
    same(x.view(2, -1, 2, 3), [p.view(-1, 2, 3) for p in a])
    same(x.view(2, x.size(1), 3, 2), [p.view(-1, 3, 2) for p in a])
    same(x.unsqueeze(1).squeeze(1), a)
    same(x.unsqueeze(-1).permute(0, 2, 1, 3), [p.unsqueeze(-1).permute(1, 0, 2) for p in a])
    for i, piece in enumerate(x.chunk(3, -1)):
        same(piece, [p.chunk(3, -1)[i] for p in a])
    same(ut.cat([x, x], -1), [ut.cat([p, p], -1) for p in a])
    assert len(ut.cat([x, x])) == 4
    same(x.select(-1, 2), [p[:, 2] for p in a])
    same(x[..., :2], [p[:, :2] for p in a])
    with pytest.raises(DimError, match="ragged"):
        x.flatten(1, 2)
    with pytest.raises(DimError, match="stays first"):
        x.transpose(0, 1)


def test_sums() -> None:
    a = parts(2, 4)
    x = ut.nested.as_nested_tensor(a, layout=ut.jagged)
    whole = ut.cat(a)
    for name in ("sum", "mean", "amax"):
        ut.testing.assert_close(getattr(x, name)(), getattr(whole, name)())
        ut.testing.assert_close(getattr(ut, name)(x, 1), ut.stack([getattr(p, name)(0) for p in a]))
        same(getattr(x, name)(dim=-1), [getattr(p, name)(-1) for p in a])
        same(getattr(x, name)(2, keepdim=True), [getattr(p, name)(1, keepdim=True) for p in a])
    ut.testing.assert_close(x.sum((1, 2)), ut.stack([p.sum() for p in a]))
    ut.testing.assert_close(x.sum((0, 1)), whole.sum(0))
    same(x.softmax(-1), [p.softmax(-1) for p in a])
    same(ut.log_softmax(x, 1), [p.log_softmax(0) for p in a])
    with pytest.raises(DimError, match="goes with its ragged dim"):
        x.sum(0)


def test_products_layers_and_gradients() -> None:
    a = [p.requires_grad_() for p in parts(1, 3)]
    ut.manual_seed(0)
    net = ut.nn.Sequential(ut.nn.Linear(3, 4), ut.nn.LayerNorm(4), ut.nn.GELU(), ut.nn.Dropout(0.0))
    net = net.double()
    x = ut.nested.as_nested_tensor(a, layout=ut.jagged)
    same(net(x), [net(p) for p in a])
    matrix = ut.randn(3, 2, dtype=ut.float64)
    same(x @ matrix, [p @ matrix for p in a])
    batch = ut.randn(2, 3, 2, dtype=ut.float64)
    same(ut.bmm(x, batch), [p @ q for p, q in zip(a, batch, strict=True)])
    table = ut.randn(5, 2)
    words = ut.nested.nested_tensor([[1, 2], [0]], layout=ut.jagged)
    same(F.embedding(words, table), [table[[1, 2]], table[[0]]])

    def run(p: Any, q: Any) -> Any:
        x = ut.nested.as_nested_tensor([p, q], layout=ut.jagged)
        y = (net(x) * 2).softmax(1)
        return y.sum(dim=1), (y * y).to_padded_tensor(0.5)

    assert ut.autograd.gradcheck(run, tuple(a))
    assert ut.autograd.gradgradcheck(run, tuple(a))
    leaf = ut.nested.nested_tensor(parts(1, 3), layout=ut.jagged, requires_grad=True)
    assert leaf.is_leaf
    (leaf**2).sum().backward()
    same(leaf.grad, [2 * p for p in leaf.detach().unbind()])


def test_attention_of_ragged_batches() -> None:
    a, b = parts(2, 4, rest=(6,)), parts(3, 5, rest=(6,), seed=1)
    q, k = (ut.nested.as_nested_tensor(t, layout=ut.jagged) for t in (a, b))
    heads = [t.unflatten(-1, [2, 3]).transpose(1, 2) for t in (q, k, k)]
    out = F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(-2)
    for o, p, s in zip(out.unbind(), a, b, strict=True):
        each = [t.unflatten(-1, [2, 3]).transpose(0, 1) for t in (p, s, s)]
        expected = F.scaled_dot_product_attention(*each)
        ut.testing.assert_close(o, expected.transpose(0, 1).flatten(-2))
    with pytest.raises(UnsupportedError, match="no attn_mask"):
        F.scaled_dot_product_attention(*heads, ut.ones(2, 2))


def test_padding() -> None:
    x = ut.nested.nested_tensor([[1.0], [2.0, 3.0]])
    assert ut.nested.to_padded_tensor(x, -1.0).tolist() == [[1, -1], [2, 3]]
    assert x.to_padded_tensor(0.0, (2, 3)).tolist() == [[1, 0, 0], [2, 3, 0]]


def test_dividing() -> None:
    given = parts(2, 4, 1, 3, rest=(4,))
    x = ut.nested.nested_tensor(given, layout=ut.jagged)
    first, second = x.chunk(2)  # of the batch
    same(first, given[:2])
    same(second, given[2:])
    assert second.offsets().tolist() == [0, 1, 4]
    same(x.split([1, 3])[1], given[1:])
    for a, b in (x.chunk(2, -1), x.chunk(chunks=2, dim=2), ut.split(x, 2, dim=-1)):
        same(a, [p[:, :2] for p in given])
        same(b, [p[:, 2:] for p in given])
    same(x.flip([-1]), [p.flip(1) for p in given])
    same(x.cumsum(dim=2), [p.cumsum(1) for p in given])
    for wrong in (lambda: x.chunk(2, 1), lambda: x.unsqueeze(4), lambda: x.unsqueeze(-5)):
        with pytest.raises(DimError):
            wrong()
    ut.testing.assert_close(x.prod(dim=1), ut.stack([p.prod(0) for p in given]))


def test_changes_in_place() -> None:
    given = parts(2, 4)
    x = nest(2, 4)
    y, values = x, x.values()
    x += 1
    x.mul_(ut.tensor([1.0, 2.0, 3.0]))
    assert x is y
    assert x.values() is values
    same(y, [(p + 1) * ut.tensor([1.0, 2.0, 3.0]) for p in given])
    assert x.zero_() is x
    assert not values.any()


def test_multihead_attention_says_what_to_use() -> None:
    x = nest(2, 4, rest=(4,))
    layer = ut.nn.MultiheadAttention(4, 2, batch_first=True).double()
    with pytest.raises(UnsupportedError, match="scaled_dot_product_attention"):
        layer(x, x, x)
