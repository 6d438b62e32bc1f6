"""What the op table cannot say about embeddings: gradients changed on purpose, rows shrunk."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut

F = ut.nn.functional


def table() -> ut.Tensor:
    return ut.tensor(np.arange(10.0).reshape(5, 2) + 1, requires_grad=True)


def test_padding_row_receives_no_gradient() -> None:
    weight = table()
    out = F.embedding(ut.tensor([[0, 2], [2, 4]]), weight, padding_idx=2)
    np.testing.assert_array_equal(out[0, 1].detach().numpy(), [5, 6])  # its value is still shown
    out.sum().backward()
    np.testing.assert_array_equal(weight.grad.numpy()[:, 0], [1, 0, 0, 0, 1])


def test_negative_padding_counts_from_the_end() -> None:
    weight = table()
    F.embedding(ut.tensor([3, 4]), weight, padding_idx=-1).sum().backward()
    np.testing.assert_array_equal(weight.grad.numpy()[:, 0], [0, 0, 0, 1, 0])


@pytest.mark.parametrize("bag", [False, True])
def test_gradient_scaled_by_frequency(bag: bool) -> None:
    weight = table()
    indices = ut.tensor([1, 1, 1, 3])
    if bag:
        out = F.embedding_bag(
            indices, weight, ut.tensor([0, 2]), mode="sum", scale_grad_by_freq=True
        )
    else:
        out = F.embedding(indices, weight, scale_grad_by_freq=True)
    out.sum().backward()
    np.testing.assert_allclose(weight.grad.numpy()[:, 0], [0, 1, 0, 1, 0])


def test_second_order_keeps_the_padding_out() -> None:
    weight = table()
    indices = ut.tensor([0, 2, 2])
    out = F.embedding(indices, weight, padding_idx=2)
    (first,) = ut.autograd.grad((out * out).sum(), weight, create_graph=True)
    (second,) = ut.autograd.grad(first.sum(), weight)
    np.testing.assert_array_equal(second.numpy()[:, 0], [2, 0, 0, 0, 0])


@pytest.mark.parametrize("requires_grad", [False, True])
def test_max_norm_shrinks_only_the_rows_used_in_place(requires_grad: bool) -> None:
    weight = table().detach().requires_grad_(requires_grad)
    before = weight.detach().numpy().copy()
    out = F.embedding(ut.tensor([1, 1, 3]), weight, max_norm=1.0)
    after = weight.detach().numpy()
    np.testing.assert_array_equal(after[[0, 2, 4]], before[[0, 2, 4]])
    np.testing.assert_allclose(np.linalg.norm(after[[1, 3]], axis=1), 1, rtol=1e-6)
    np.testing.assert_array_equal(out.detach().numpy(), after[[1, 1, 3]])
    if requires_grad:
        out.sum().backward()
        np.testing.assert_array_equal(weight.grad.numpy()[:, 0], [0, 2, 0, 1, 0])


def test_a_bad_index_changes_no_row() -> None:
    weight = table().detach()
    before = weight.numpy().copy()
    with pytest.raises(IndexError):
        F.embedding(ut.tensor([1, 9]), weight, max_norm=1.0)
    np.testing.assert_array_equal(weight.numpy(), before)


def test_bag_padding_receives_no_gradient_and_does_not_count() -> None:
    weight = table()
    out = F.embedding_bag(ut.tensor([[0, 2, 1], [2, 2, 2]]), weight, padding_idx=2)
    np.testing.assert_array_equal(out.detach().numpy(), [[2, 3], [0, 0]])
    out.sum().backward()
    np.testing.assert_array_equal(weight.grad.numpy()[:, 0], [0.5, 0.5, 0, 0, 0])


def test_a_padding_row_gets_nothing_even_of_nan() -> None:
    table = ut.randn(4, 2, requires_grad=True)
    at = ut.tensor([0, 3, 3, 1])
    rows = ut.nn.functional.embedding(at, table, padding_idx=3)
    lengths = rows.sum(1)
    scale = ut.tensor([1.0, float("nan"), float("nan"), 2.0])
    (lengths * scale).sum().backward()
    assert table.grad is not None
    np.testing.assert_array_equal(table.grad.numpy(), [[1, 1], [2, 2], [0, 0], [0, 0]])


def test_a_frozen_table_may_hold_integers() -> None:
    table = ut.tensor([[1, 2], [3, 4]])
    layer = ut.nn.Embedding.from_pretrained(table)
    assert layer(ut.tensor([1])).tolist() == [[3, 4]]
    with pytest.raises(RuntimeError, match="only floating"):
        ut.nn.Embedding.from_pretrained(table, freeze=False)


def test_sparse_gradients_of_empty_tables() -> None:
    layer = ut.nn.Embedding(10, 0, sparse=True)
    layer(ut.tensor([[0, 2], [9, 3]])).sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.shape == (10, 0)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_the_last_bag_ends_at_the_last_offset(mode: str) -> None:
    """As torch documents it; there a maximum looks further, and a mean divides by more."""
    table = ut.arange(10.0).reshape(5, 2)
    found, expected = (
        ut.nn.functional.embedding_bag(
            at, table, ut.tensor([0, 1, 3]), mode=mode, include_last_offset=True
        )
        for at in (ut.tensor([0, 1, 2, 3, 4]), ut.tensor([0, 1, 2]))
    )
    ut.testing.assert_close(found, expected)
