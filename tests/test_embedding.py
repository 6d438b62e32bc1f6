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
