"""Normalisation of channels: running statistics, precision, dtypes, higher orders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut
import undertow.nn.functional as F
from undertow.autograd import grad, gradcheck, gradgradcheck


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape)


def leaf(array: Any) -> ut.Tensor:
    return ut.tensor(np.asarray(array, np.float64), requires_grad=True)


# Running statistics --------------------------------------------------------------------------
def test_running_statistics_move_in_place() -> None:
    """Towards the mean and the unbiased variance, by the momentum."""
    x = normal(4, 3, 5)
    mean, var = ut.tensor(normal(3, seed=1)), ut.tensor(normal(3, seed=2) ** 2)
    first = mean.numpy().copy(), var.numpy().copy()
    F.batch_norm(ut.tensor(x), mean, var, training=True, momentum=0.3)
    np.testing.assert_allclose(mean.numpy(), 0.7 * first[0] + 0.3 * x.mean((0, 2)))
    np.testing.assert_allclose(var.numpy(), 0.7 * first[1] + 0.3 * x.var((0, 2), ddof=1))


def test_momentum_of_one_and_zero() -> None:
    """1 forgets, 0 stays; so a mean over all batches is a momentum of 1/t at batch t."""
    batches = [normal(4, 2, 3, seed=s) for s in range(3)]
    mean, var = ut.zeros(2, dtype=ut.float64), ut.zeros(2, dtype=ut.float64)
    for t, x in enumerate(batches, 1):
        F.batch_norm(ut.tensor(x), mean, var, training=True, momentum=1 / t)
    np.testing.assert_allclose(mean.numpy(), np.mean([x.mean((0, 2)) for x in batches], 0))
    np.testing.assert_allclose(var.numpy(), np.mean([x.var((0, 2), ddof=1) for x in batches], 0))
    before = mean.clone()
    F.batch_norm(ut.tensor(batches[0]), mean, var, training=True, momentum=0.0)
    assert ut.equal(mean, before)


def test_without_momentum_they_are_means_over_all_batches() -> None:
    """As in torch's layers with momentum=None, which count their batches."""
    mean, var, seen = ut.zeros(3, dtype=ut.float64), ut.ones(3, dtype=ut.float64), ut.tensor(0)
    batches = [normal(4, 3, 5, seed=seed) + seed for seed in range(4)]
    for batch in batches:
        F.batch_norm(
            ut.tensor(batch), mean, var, training=True, momentum=None, num_batches_tracked=seen
        )
    assert int(seen) == 4
    np.testing.assert_allclose(mean.numpy(), np.mean([b.mean((0, 2)) for b in batches], 0))
    np.testing.assert_allclose(var.numpy(), np.mean([b.var((0, 2), ddof=1) for b in batches], 0))
    F.batch_norm(ut.tensor(batches[0]), mean, var, momentum=None)
    assert int(seen) == 4


def test_without_momentum_batches_must_be_counted() -> None:
    """The error says what is missing, and a count that is none is refused."""
    x, mean, var = ut.tensor(normal(4, 3)), ut.zeros(3).double(), ut.ones(3).double()
    with pytest.raises(ut.errors.ArgumentError, match="needs num_batches_tracked"):
        F.batch_norm(x, mean, var, training=True, momentum=None)
    with pytest.raises(ut.errors.ArgumentError, match="must be one integer"):
        F.batch_norm(x, mean, var, training=True, num_batches_tracked=ut.zeros(1))
    assert mean.tolist() == [0.0] * 3
    seen = ut.tensor(3)
    with pytest.raises(ut.errors.ShapeError, match="more than one element"):
        F.batch_norm(x[:1], mean, var, training=True, num_batches_tracked=seen)
    with pytest.raises(ut.errors.DeviceError, match="device"):
        F.batch_norm(
            x,
            mean,
            var,
            ut.ones(3, device="reference").double(),
            training=True,
            num_batches_tracked=seen,
        )
    assert int(seen) == 3


def test_evaluation_does_not_touch_them() -> None:
    mean, var = ut.zeros(3), ut.ones(3)
    F.batch_norm(ut.tensor(normal(2, 3)).float(), mean, var)
    F.instance_norm(ut.tensor(normal(2, 3, 4)).float(), mean, var, use_input_stats=False)
    assert mean._version == var._version == 0


def test_an_empty_batch_leaves_them() -> None:
    """There is nothing to learn from it."""
    mean, var = ut.zeros(3), ut.ones(3)
    w = ut.ones(3, requires_grad=True)
    y = F.batch_norm(ut.zeros(0, 3, 4), mean, var, w, training=True)
    assert y.shape == (0, 3, 4)
    assert (mean.tolist(), var.tolist()) == ([0.0] * 3, [1.0] * 3)
    assert grad(y.sum(), w)[0].tolist() == [0.0] * 3


@pytest.mark.parametrize("shape", [(0, 4, 3), (2, 4, 0), (0, 4)])
@pytest.mark.parametrize("name", ["batch_norm", "instance_norm", "group_norm", "evaluated"])
def test_gradients_of_an_empty_batch_are_zero(name: str, shape: tuple[int, ...]) -> None:
    """Of the first and of the second order: no element depends on the parameters."""
    if name == "instance_norm" and len(shape) == 2:
        return  # refused, as it is with elements
    x, w, b = leaf(np.zeros(shape)), leaf(np.ones(4)), leaf(np.ones(4))
    run = {
        "batch_norm": lambda: F.batch_norm(x, None, None, w, b, True),
        "instance_norm": lambda: F.instance_norm(x, None, None, w, b),
        "group_norm": lambda: F.group_norm(x, 2, w, b),
        "evaluated": lambda: F.batch_norm(x, b.detach(), b.detach(), w, b),
    }[name]
    first = grad(run().sum(), [x, w, b], create_graph=True)
    second = grad(sum(g.square().sum() for g in first), [x, w, b], materialize_grads=True)
    for found, t in zip([*first, *second], [x, w, b] * 2, strict=True):
        assert found.shape == t.shape
        assert not found.any()


def test_instances_share_running_statistics() -> None:
    x = normal(4, 3, 5)
    mean, var = ut.zeros(3, dtype=ut.float64), ut.ones(3, dtype=ut.float64)
    F.instance_norm(ut.tensor(x), mean, var, momentum=0.2)
    np.testing.assert_allclose(mean.numpy(), 0.2 * x.mean(2).mean(0))
    np.testing.assert_allclose(var.numpy(), 0.8 + 0.2 * x.var(2, ddof=1).mean(0))


def test_statistics_do_not_leak_into_the_graph() -> None:
    """They are changed in place in every step, and a backward still works after the next one."""
    mean, var = ut.zeros(3), ut.ones(3)
    w = ut.ones(3, requires_grad=True)
    x = ut.tensor(normal(4, 3)).float()
    losses = [F.batch_norm(x * k, mean, var, w, training=True).square().sum() for k in (1, 2)]
    for loss in losses:
        loss.backward()
    assert not mean.requires_grad
    assert w.grad.isfinite().all()


def test_running_statistics_have_no_gradient() -> None:
    with pytest.raises(ut.errors.ArgumentError, match=r"\[batch_norm\] running_mean has no gradi"):
        F.batch_norm(ut.ones(2, 3), ut.zeros(3, requires_grad=True), ut.ones(3))


# Numbers -------------------------------------------------------------------------------------
def test_a_large_mean_does_not_cost_digits() -> None:
    """The variance is that of what is left when the mean is taken away."""
    x = normal(64, 2, 16)
    expected = F.batch_norm(ut.tensor(x), None, None, training=True).numpy()
    found = F.batch_norm(ut.tensor(x + 1000).float(), None, None, training=True).numpy()
    np.testing.assert_allclose(found, expected, atol=2e-3)


@pytest.mark.parametrize("dtype", [ut.float16, ut.bfloat16])
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("name", ["batch_norm", "instance_norm", "group_norm", "evaluated"])
def test_half_precision_is_computed_in_single(name: str, dtype: Any, single: bool) -> None:
    """With parameters in either; gradients come back in the dtype of what they belong to."""
    x = ut.tensor(normal(4, 6, 5)).to(dtype).requires_grad_()
    w, b = (ut.tensor(normal(6, seed=s)).to(dtype) for s in (1, 2))
    run = {
        "batch_norm": lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
        "instance_norm": lambda x, w, b: F.instance_norm(x, None, None, w, b),
        "group_norm": lambda x, w, b: F.group_norm(x, 2, w, b),
        "evaluated": lambda x, w, b: F.batch_norm(x, ut.zeros(6), ut.ones(6), w, b),
    }[name]
    given = [p.float() if single else p for p in (w, b)]
    given = [p.detach().requires_grad_() for p in given]
    y = run(x, *given)
    assert y.dtype is dtype
    wide = run(x.detach().float(), w.float(), b.float())
    assert ut.equal(y, wide.to(dtype))
    for p, g in zip([x, *given], grad(y.float().square().sum(), [x, *given]), strict=True):
        assert g.dtype is p.dtype
        assert g.shape == p.shape


MAGNITUDES = (0.0, 0.1, -54321.7, 3.3e-30, 1.7e8, -7.7e20, 3.1e38)
NORMS = {
    "layer_norm": (lambda x: F.layer_norm(x, x.shape[1:]), (1, 2)),
    "group_norm": (lambda x: F.group_norm(x, 1), (1, 2)),
    "instance_norm": (lambda x: F.instance_norm(x), (2,)),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), (0, 2)),
}


# (7, 1, 7) is for NumPy also on the CPU; the others have kernels, a row along the memory, in
# several segments, or beside others in lanes.
@pytest.mark.parametrize("shape", [(7, 1, 7), (3, 6, 700), (900, 16, 1), (2, 3, 9000)])
@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("name", NORMS)
def test_constant_rows_are_zero(name: str, device: str, shape: tuple[int, ...]) -> None:
    """However large: dx of y = 0 is g less its mean, by the root of eps, in any order."""
    if name == "instance_norm" and shape[2] == 1:
        return  # refused: a channel of one element has no variance
    norm, dims = NORMS[name]
    g = normal(*shape).astype(np.float32)
    slope = (g - g.mean(dims, np.float64, keepdims=True)) / np.sqrt(1e-5)
    for constant in MAGNITUDES:
        x = ut.full(shape, constant, device=device, requires_grad=True)
        y = norm(x)
        assert not y.any()
        for create_graph in (False, True):
            (found,) = grad(y, x, ut.tensor(g, device=device), True, create_graph)
            np.testing.assert_allclose(
                found.detach().cpu().numpy(), slope, rtol=1e-5, atol=1e-3, err_msg=f"{constant}"
            )
        (second,) = grad(found, x, found.detach())
        assert not second.any()  # at y = 0 neither rstd nor the product of y and g changes


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("name", NORMS)
def test_rows_that_are_nearly_constant(name: str, device: str) -> None:
    """One element in which a row differs by an ulp, the first or another, is found."""
    norm, dims = NORMS[name]
    for at in (0, 1, -1):
        x = np.full((2, 3, 3000), 54321.7, np.float32)
        x[..., at] = np.nextafter(x[..., at], np.float32(np.inf))
        wide = x.astype(np.float64)
        h = wide - wide.mean(dims, keepdims=True)
        expected = h / np.sqrt((h * h).mean(dims, keepdims=True) + 1e-5)
        found = norm(ut.tensor(x, device=device)).cpu().numpy()
        np.testing.assert_allclose(found, expected, atol=2e-3)


def test_evaluation_of_what_is_equal_to_the_running_mean() -> None:
    """It is zero, and the bias is not lost beside a large mean."""
    x, mean, var = ut.full((4, 3, 200), -54321.7), ut.full((3,), -54321.7), ut.zeros(3)
    bias = ut.tensor([0.0, 0.5, -1.0])
    y = F.batch_norm(x, mean, var, bias=bias)
    assert ut.equal(y, bias[:, None].expand(4, 3, 200))


def test_groups_of_all_and_of_one_channel() -> None:
    """One group is a layer norm; a group for each channel is an instance norm."""
    x = ut.tensor(normal(2, 4, 5))
    whole = F.layer_norm(x, (4, 5))
    np.testing.assert_allclose(F.group_norm(x, 1).numpy(), whole.numpy(), atol=1e-12)
    np.testing.assert_allclose(F.group_norm(x, 4).numpy(), F.instance_norm(x).numpy(), atol=1e-12)


# Orders --------------------------------------------------------------------------------------
@pytest.mark.parametrize("needs", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (0, 1, 1)])
@pytest.mark.parametrize("training", [False, True])
def test_every_subset_of_inputs(needs: tuple[int, ...], training: bool) -> None:
    """Only what is wanted is computed, and it is right."""
    parts = [leaf(a) for a in (normal(3, 2, 4), normal(2, seed=1), normal(2, seed=2))]
    parts = [p if need else p.detach() for p, need in zip(parts, needs, strict=True)]
    leaves = [p for p in parts if p.requires_grad]

    def run(*_: Any) -> Any:
        x, w, b = parts
        return F.batch_norm(
            x, ut.tensor([0.5, 1.0]).double(), ut.tensor([2.0, 1.0]).double(), w, b, training
        )

    assert gradcheck(run, leaves)
    cubed = lambda *_: run() ** 3
    assert gradgradcheck(cubed, leaves, fast_mode=True)


@pytest.mark.parametrize(
    "run",
    [
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
        lambda x, w, b: F.instance_norm(x, None, None, w, b),
        lambda x, w, b: F.group_norm(x, 2, w, b),
        lambda x, w, b: F.local_response_norm(x, 2, 0.5) * w.sum() + b.sum(),
    ],
)
def test_third_order(run: Any) -> None:
    """The gradient of a gradient passes gradgradcheck."""
    inputs = [leaf(normal(2, 4, 3)), leaf(normal(4, seed=1)), leaf(normal(4, seed=2))]

    def slopes(*inputs: Any) -> Any:
        return grad((run(*inputs) ** 3).sum(), inputs, create_graph=True)

    assert gradcheck(slopes, inputs, fast_mode=True, atol=1e-4)
    assert gradgradcheck(slopes, inputs, fast_mode=True, rtol=1e-2, atol=1e-3)


def test_instance_norm_with_statistics_of_another_dtype() -> None:
    """They are kept in theirs, and used in the input's, as in torch."""
    layer = ut.nn.InstanceNorm1d(3, track_running_stats=True)
    x = ut.arange(30, dtype=ut.float64).reshape(2, 3, 5) / 7
    assert layer(x).dtype is ut.float64
    assert layer.running_mean.dtype is ut.float32
    same = ut.nn.InstanceNorm1d(3, track_running_stats=True).double()
    same(x)
    assert ut.allclose(layer.running_var.double(), same.running_var)
    assert ut.allclose(layer.eval()(x), same.eval()(x), atol=1e-6)


def test_layer_norm_of_no_dimensions() -> None:
    """It can be made, as in torch, and says so when it is called."""
    layer = ut.nn.LayerNorm(())
    assert layer.weight.shape == ()
    with pytest.raises(ut.errors.ShapeError, match="at least one dimension"):
        layer(ut.tensor([3.0, 4.0]))
