"""Corners of functions: inputs of torch's own samples in which something differed once."""

from __future__ import annotations

import math

import numpy as np
import pytest

import undertow as ut

F = ut.nn.functional


def test_gradient_without_spacing() -> None:
    """A spacing of None is 1."""
    x = ut.tensor([1.0, 2.0, 4.0])
    assert ut.gradient(x, spacing=None)[0].tolist() == ut.gradient(x)[0].tolist()


def test_negative_eps() -> None:
    """A negative eps is taken as it is by norms of groups and instances, and refused by batches."""
    x = ut.arange(8.0).reshape(2, 2, 2)
    wanted = (x[0] - 1.5) / math.sqrt(1.25 - 0.5)
    np.testing.assert_allclose(F.group_norm(x, 1, eps=-0.5)[0].numpy(), wanted.numpy(), rtol=1e-6)
    assert F.instance_norm(x, eps=-0.5).isnan().all()
    with pytest.raises(ValueError, match=r"\[batch_norm\] eps must not be negative, got -0.5"):
        F.batch_norm(x, None, None, training=True, eps=-0.5)


def test_margin_of_one_score() -> None:
    """A number is the score of one class, and no other comes near it."""
    for target, shape in ((ut.tensor(0), ()), (ut.tensor([0]), (1,))):
        x = ut.tensor(2.0, requires_grad=True)
        loss = F.multi_margin_loss(x, target, reduction="none")
        assert loss.shape == shape
        loss.sum().backward()
        assert x.grad is not None
        assert loss.sum().item() == x.grad.item() == 0.0


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_of_nothing(training: bool) -> None:
    """An input of shape (0,) has no dimension of channels; its result is empty as well."""
    x = ut.zeros(0, requires_grad=True)
    y = F.batch_norm(x, ut.zeros(0), ut.zeros(0), training=training)
    y.sum().backward()
    assert y.shape == (0,)
    assert x.grad is not None


def test_group_norm_statistics_of_nothing() -> None:
    """Without elements in a group the statistics still have a shape."""
    y, mean, rstd = ut.native_group_norm(ut.ones(0, 4, 3), None, None, 0, 4, 3, 2, 1e-5)
    assert (y.shape, mean.shape, rstd.shape) == ((0, 4, 3), (0, 2), (0, 2))


def test_powers_of_a_number() -> None:
    """`linalg.vander` takes a number as a vector of one."""
    assert ut.linalg.vander(ut.tensor(2.0), N=3).tolist() == [[1.0, 2.0, 4.0]]


@pytest.mark.parametrize("dtype", [ut.uint8, ut.int16, ut.float32])
def test_no_positions_of_any_dtype(dtype: ut.dtype) -> None:
    """Of an empty index the dtype does not matter; of another it does."""
    none = ut.zeros(0, dtype=dtype)
    assert ut.gather(ut.ones(3), 0, none).shape == (0,)
    assert ut.ones(3).scatter(0, none, 2.0).tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(TypeError, match="must be int64 or int32"):
        ut.gather(ut.ones(3), 0, ut.zeros(1, dtype=dtype))


def test_runs_that_leave_out_elements() -> None:
    """Offsets, and lengths that are `unsafe`, need not cover the data; they may not exceed it."""
    x = ut.arange(6.0, requires_grad=True)
    by_lengths = ut.segment_reduce(x, "sum", lengths=ut.tensor([1, 2]), unsafe=True)
    by_offsets = ut.segment_reduce(x, "max", offsets=ut.tensor([1, 2, 5]))
    assert (by_lengths.tolist(), by_offsets.tolist()) == ([0.0, 3.0], [1.0, 4.0])
    (by_lengths.sum() + by_offsets.sum()).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1.0, 2.0, 1.0, 0.0, 1.0, 0.0]
    rows = ut.arange(8.0).reshape(2, 4)
    runs = ut.tensor([[1, 1], [2, 0]])
    assert ut.segment_reduce(rows, "sum", lengths=runs, axis=1, unsafe=True).tolist() == [
        [0.0, 1.0],
        [9.0, 0.0],
    ]
    with pytest.raises(ValueError, match="must add up to 6, the size of data along axis 0"):
        ut.segment_reduce(x, "sum", lengths=ut.tensor([1, 2]))
    with pytest.raises(ValueError, match="or to less"):
        ut.segment_reduce(x, "sum", lengths=ut.tensor([5, 2]), unsafe=True)


def test_complex_rms_norm() -> None:
    """By the mean of the squares, not of squared absolute values, as torch has it."""
    x = np.array([[1 + 2j, 3 - 1j]])
    wanted = x / np.sqrt((x * x).mean(-1, keepdims=True) + 0.25) * 2j
    got = F.rms_norm(ut.tensor(x), (2,), ut.tensor([2j, 2j], dtype=ut.complex128), eps=0.25)
    np.testing.assert_allclose(got.numpy(), wanted)
    given = ut.tensor(x, requires_grad=True)
    assert ut.autograd.gradcheck(lambda x: F.rms_norm(x, (2,)), given)
    assert ut.autograd.gradgradcheck(lambda x: F.rms_norm(x, (2,)), given)


@pytest.mark.parametrize("kind", [ut.float64, ut.complex128])
def test_eigh_gradient_is_hermitian(kind: ut.dtype) -> None:
    """The gradient of what is read as a Hermitian matrix is one, whatever the loss."""
    ut.manual_seed(0)
    x = ut.randn(4, 4, dtype=kind)
    a = (x + x.mH).requires_grad_()
    values, vectors = ut.linalg.eigh(a)
    loss = (vectors.abs() * ut.rand(4, 4, dtype=ut.float64)).sum() + (values**3).sum()
    (g,) = ut.autograd.grad(loss, a, create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), g.detach().mH.numpy(), atol=1e-12)
    (again,) = ut.autograd.grad((g.abs() ** 2).sum(), a)
    np.testing.assert_allclose(again.numpy(), again.mH.numpy(), atol=1e-9)


def test_curvature_of_i1e_at_zero() -> None:
    """Its second derivative jumps from 1 to -1 there: the middle, not NaN."""
    x = ut.tensor([-1e-9, 0.0, 1e-9], dtype=ut.float64, requires_grad=True)
    (g,) = ut.autograd.grad(ut.special.i1e(x).sum(), x, create_graph=True)
    (again,) = ut.autograd.grad(g.sum(), x)
    np.testing.assert_allclose(again.numpy(), [1.0, 0.0, -1.0], atol=1e-8)


def test_division_by_its_older_name() -> None:
    """`__rdiv__` is division of something else by a tensor."""
    assert ut.tensor([2.0, 4.0]).__rdiv__(8).tolist() == [4.0, 2.0]
