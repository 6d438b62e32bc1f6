"""Sparse gradients of tables: embedding(sparse=True), and the optimisers that take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut

F = ut.nn.functional
TABLE = np.random.default_rng(5).standard_normal((6, 3))
AT = [[1, 4, 1], [5, 4, 4]]


def gradient(sparse: bool, look_up: Any) -> Any:
    """The table's gradient after two backward passes."""
    table = ut.tensor(TABLE, requires_grad=True)
    for factor in (1.0, 2.0):
        (look_up(table, sparse).square() * factor).sum().backward()
    return table.grad


@pytest.mark.parametrize(
    "look_up",
    [
        lambda t, s: F.embedding(ut.tensor(AT), t, sparse=s),
        lambda t, s: F.embedding(ut.tensor(AT), t, padding_idx=4, sparse=s),
        lambda t, s: F.embedding(ut.tensor(AT), t, max_norm=1.0, sparse=s),
        lambda t, s: F.embedding_bag(ut.tensor(AT), t, mode="sum", sparse=s),
        lambda t, s: F.embedding_bag(ut.tensor(AT), t, mode="mean", padding_idx=5, sparse=s),
        lambda t, s: F.embedding_bag(
            ut.tensor(AT),
            t,
            mode="sum",
            sparse=s,
            per_sample_weights=ut.arange(6.0, dtype=ut.float64).reshape(2, 3),
        ),
    ],
)
def test_as_the_dense_gradient(look_up: Any) -> None:
    """The same numbers, of the rows that were looked up alone."""
    sparse, dense = gradient(True, look_up), gradient(False, look_up)
    assert sparse.layout is ut.sparse_coo
    assert sparse.sparse_dim() == 1
    assert set(sparse.coalesce().indices()[0].tolist()) <= {1, 4, 5}
    np.testing.assert_allclose(sparse.to_dense().numpy(), dense.numpy())


@pytest.mark.parametrize("first", ["dense", "sparse"])
def test_beside_a_dense_gradient(first: str) -> None:
    """A table that is used otherwise, too, gets the sum, which is dense."""
    table = ut.tensor(TABLE, requires_grad=True)
    losses = {
        "dense": lambda: (table * 2).sum(),
        "sparse": lambda: F.embedding(ut.tensor(AT), table, sparse=True).sum(),
    }
    for name in (first, *{"dense", "sparse"} - {first}):
        losses[name]().backward()
    assert isinstance(table.grad, ut.Tensor)
    wanted = 2 + np.bincount(np.ravel(AT), minlength=6)[:, None] * np.ones(3)
    np.testing.assert_allclose(table.grad.numpy(), wanted)


def test_without_gradients() -> None:
    """No history is made where none is wanted."""
    table = ut.tensor(TABLE, requires_grad=True)
    with ut.no_grad():
        assert not F.embedding(ut.tensor(AT), table, sparse=True).requires_grad
    assert not F.embedding(ut.tensor(AT), table.detach(), sparse=True).requires_grad


def step(rows: Any, name: str, options: Any, sparse: bool) -> Any:
    table = ut.tensor(TABLE, requires_grad=True)
    optimizer = getattr(ut.optim, name)([table], **options)
    for at in rows:
        optimizer.zero_grad()
        F.embedding(ut.tensor(at), table, sparse=sparse).square().sum().backward()
        optimizer.step()
    return table.detach().numpy(), optimizer


@pytest.mark.parametrize(
    "name, options",
    [
        ("SGD", {"lr": 0.1}),
        ("SGD", {"lr": 0.1, "maximize": True}),
        ("Adagrad", {"lr": 0.1, "lr_decay": 0.1}),
    ],
)
def test_steps_as_with_dense_gradients(name: str, options: Any) -> None:
    """Where a row without a gradient does not change anyway."""
    rows = [[1, 4, 1], [5, 4], [0]]
    got, wanted = (step(rows, name, options, sparse)[0] for sparse in (True, False))
    np.testing.assert_allclose(got, wanted)


def test_sparse_adam() -> None:
    """Adam of the rows that are met; others keep their moments."""
    got, optimizer = step([[1, 4], [4]], "SparseAdam", {"lr": 0.1}, True)
    table = TABLE.copy()
    mean, square = np.zeros_like(table), np.zeros_like(table)
    for t, rows in enumerate(([1, 4], [4]), 1):
        g = 2 * table[rows]
        mean[rows] = 0.9 * mean[rows] + 0.1 * g
        square[rows] = 0.999 * square[rows] + 0.001 * g * g
        rate = 0.1 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        table[rows] -= rate * mean[rows] / (np.sqrt(square[rows]) + 1e-8)
    np.testing.assert_allclose(got, table)
    (state,) = optimizer.state.values()
    assert float(state["step"]) == 2.0
    np.testing.assert_allclose(state["exp_avg"].numpy(), mean)


@pytest.mark.parametrize("name", ["SparseAdam", "SGD", "Adagrad"])
def test_gradients_of_single_elements(name: str) -> None:
    """Where a gradient has elements rather than rows, those are changed as a dense one would."""
    positions = ut.tensor([[0, 2, 2], [1, 0, 1]])
    values = ut.tensor([1.0, -2.0, 3.0])
    sparse = ut.ones(3, 2, requires_grad=True)
    dense = ut.ones(3, requires_grad=True)
    optimisers = [getattr(ut.optim, name)([p], lr=0.1) for p in (sparse, dense)]
    for _ in range(2):
        sparse.grad = ut.sparse_coo_tensor(positions, values, (3, 2))
        dense.grad = ut.sparse_coo_tensor(ut.tensor([[0, 1, 2]]), values, (3,))
        for optimiser in optimisers:
            optimiser.step()
    assert sparse.detach()[positions[0], positions[1]].tolist() == dense.tolist()
    assert (sparse.detach() == 1).sum() == 3


@pytest.mark.parametrize("options", [{}, {"nesterov": True}, {"dampening": 0.5}])
def test_momentum_goes_on_without_a_gradient(options: dict[str, Any]) -> None:
    """A row keeps moving after the step whose gradient has it, as with dense gradients."""
    options = {"lr": 0.1, "momentum": 0.9, **options}
    batches = [[1, 4], [4], [0, 4]]
    got, _ = step(batches, "SGD", options, True)
    expected, _ = step(batches, "SGD", options, False)
    np.testing.assert_allclose(got, expected)


@pytest.mark.parametrize(
    "make, word",
    [
        (lambda t: ut.optim.Adam([t]), r"\[Adam\].*SparseAdam"),
        (lambda t: ut.optim.SGD([t], weight_decay=0.1), r"\[SGD\] weight_decay"),
        (lambda t: ut.optim.Adagrad([t], weight_decay=0.1), r"\[Adagrad\] weight_decay"),
    ],
)
def test_optimisers_that_refuse(make: Any, word: str) -> None:
    """What would change every row is an error."""
    table = ut.tensor(TABLE, requires_grad=True)
    F.embedding(ut.tensor(AT), table, sparse=True).sum().backward()
    with pytest.raises(ut.errors.UnsupportedError, match=word):
        make(table).step()


def test_errors() -> None:
    """A table that is no leaf, and bags of maxima."""
    table = ut.tensor(TABLE, requires_grad=True)
    with pytest.raises(ut.errors.UnsupportedError, match=r"\[embedding\].*leaf.*sparse=False"):
        F.embedding(ut.tensor(AT), table * 2, sparse=True)
    with pytest.raises(ut.errors.UnsupportedError, match=r"\[embedding_bag\].*max"):
        F.embedding_bag(ut.tensor(AT), table, mode="max", sparse=True)


def test_layers() -> None:
    """nn.Embedding and nn.EmbeddingBag learn with sparse gradients."""
    for layer in (ut.nn.Embedding(5, 2, sparse=True), ut.nn.EmbeddingBag(5, 2, sparse=True)):
        optimizer = ut.optim.SparseAdam(layer.parameters(), lr=0.1)
        losses = []
        for _ in range(20):
            optimizer.zero_grad()
            loss = (layer(ut.tensor([[0, 1], [3, 1]])) - 1).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0] / 2


@pytest.mark.parametrize("optimizer", [False, True])
def test_sparse_gradients_are_set_to_zero(optimizer: bool) -> None:
    layer = ut.nn.Embedding(4, 2, sparse=True)
    layer(ut.tensor([1, 1, 3])).sum().backward()
    owner: Any = ut.optim.SGD(layer.parameters(), lr=0.1) if optimizer else layer
    owner.zero_grad(set_to_none=False)
    grad: Any = layer.weight.grad
    assert grad.is_sparse
    assert grad.shape == (4, 2)
    assert not grad.to_dense().any()
    layer(ut.tensor([2])).sum().backward()
    assert layer.weight.grad.to_dense().tolist() == [[0, 0], [0, 0], [1, 1], [0, 0]]


def test_a_sparse_gradient_can_be_set() -> None:
    weight = ut.nn.Parameter(ut.ones(3, 2))
    weight.grad = ut.sparse_coo_tensor([[1]], [[1.0, 2.0]], (3, 2))
    ut.optim.SGD([weight], lr=1.0).step()
    assert weight.tolist() == [[1, 1], [0, -1], [1, 1]]
    with pytest.raises(RuntimeError, match=r"\[grad\] expects shape"):
        weight.grad = ut.sparse_coo_tensor([[1]], [[1.0]], (3, 1))


def test_functions_save_and_return_sparse_tensors() -> None:
    """A sparse gradient of a custom Function is added to others as a dense one."""

    class Fixed(ut.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: ut.Tensor, g: Any) -> ut.Tensor:
            ctx.save_for_backward(g)
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: ut.Tensor) -> Any:
            return ctx.saved_tensors[0], None

    a = ut.sparse_coo_tensor([[0, 2]], [1.0, 2.0], (3,))
    b = ut.sparse_coo_tensor([[1, 2]], [10.0, 20.0], (3,))
    for given, expected in (
        ((a, ut.ones(3), b), [2.0, 11.0, 23.0]),
        ((ut.ones(3), a, b), [2.0, 11.0, 23.0]),
        ((a, b), [1.0, 10.0, 22.0]),
        ((a,), [1.0, 0.0, 2.0]),
    ):
        x = ut.rand(3, requires_grad=True)
        sum(Fixed.apply(x, g) for g in given).sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == expected
    y = Fixed.apply(x, a)
    a._stored.mul_(2)
    with pytest.raises(RuntimeError, match="changed in place"):
        y.sum().backward()


def test_zero_grad_detaches_and_empties_a_sparse_gradient() -> None:
    layer = ut.nn.Embedding(4, 2, sparse=True)
    layer(ut.tensor([1, 1, 3])).sum().backward()
    grad = layer.weight.grad
    assert grad.detach_() is grad
    assert not grad.requires_grad
    assert float(grad.zero_().to_dense().abs().sum()) == 0


def test_a_checked_function_may_give_a_sparse_tensor() -> None:
    """Which is one result, though it can be iterated over."""
    outputs = []

    def watched(func: Any, leaves: Any, **kwargs: Any) -> bool:
        outputs.append(func(*leaves))
        return True

    s = ut.eye(3, dtype=ut.float64).to_sparse_csr().requires_grad_()
    assert ut.sparse.as_sparse_gradcheck(watched)(lambda s: s * 2, (s,))
    assert [type(found) for found in outputs] == [ut.Tensor]
    check = ut.sparse.as_sparse_gradcheck(ut.autograd.gradcheck)
    assert check(lambda s: s * s, (s,))
