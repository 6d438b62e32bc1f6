"""Functions behind an underscore: what they compute, and that they differentiate."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut

F = ut.nn.functional


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_slopes_of_softmax(name: str) -> None:
    """They are what the engine finds, and can be differentiated again."""
    x = ut.randn(3, 4, dtype=ut.float64, requires_grad=True)
    g = ut.randn(3, 4, dtype=ut.float64, requires_grad=True)
    y = getattr(ut, name)(x, 1)
    (wanted,) = ut.autograd.grad(y, x, g, retain_graph=True)
    slope = getattr(ut, f"_{name}_backward_data")
    np.testing.assert_allclose(slope(g, y, 1, ut.float64).detach().numpy(), wanted.numpy())
    assert ut.autograd.gradcheck(
        lambda g, y: slope(g, y, 1, ut.float64), (g, y.detach().requires_grad_())
    )


def test_softmax_of_nothing() -> None:
    """A row of -inf is zeros, with zero gradients; the others are as ever."""
    x = ut.tensor([[0.0, 1.0], [-np.inf, -np.inf]], requires_grad=True)
    y = ut._safe_softmax(x, -1)
    (g,) = ut.autograd.grad((y * y).sum(), x)
    assert y[1].tolist() == g[1].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(y[0].detach().numpy(), x[0].softmax(0).detach().numpy())


def test_batch_norms() -> None:
    """With running statistics, without them, and always in training."""
    x = ut.randn(4, 3)
    mean, var = ut.zeros(3), ut.ones(3)
    wanted = F.batch_norm(x, None, None, training=True)
    for found in (
        ut._native_batch_norm_legit(x, None, None, True, 0.1, 1e-5)[0],
        ut._native_batch_norm_legit(x, None, None, None, None, True, 0.1, 1e-5)[0],
        ut._batch_norm_with_update(x, None, None, mean, var, 1.0, 1e-5)[0],
    ):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-6)
    np.testing.assert_allclose(mean.numpy(), x.mean(0).numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="needs training, momentum and eps"):
        ut._native_batch_norm_legit(x, None, None, None, None)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialiased(mode: str) -> None:
    """The functions behind `interpolate(antialias=True)`."""
    x = ut.rand(1, 2, 8, 8)
    small = getattr(ut, f"_upsample_{mode}2d_aa")
    wanted = F.interpolate(x, (3, 5), mode=mode, antialias=True)
    assert small(x, (3, 5), False).tolist() == wanted.tolist()
    half = F.interpolate(x, scale_factor=(0.5, 0.5), mode=mode, antialias=True)
    assert small(x, None, False, scale_factors=(0.5, 0.5)).tolist() == half.tolist()
    apart = F.interpolate(x, scale_factor=(0.45, 0.55), mode=mode, antialias=True)
    assert small(x, (3, 4), False, 0.45, 0.55).tolist() == apart.tolist()
    image = (x * 255).to(ut.uint8)
    apart = F.interpolate(image, scale_factor=(0.45, 0.55), mode=mode, antialias=True)
    assert small(image, (3, 4), False, 0.45, 0.55).tolist() == apart.tolist()


def test_indices_that_are_masked() -> None:
    """What is masked may point anywhere, and has no gradient."""
    x = ut.arange(6.0).reshape(2, 3).requires_grad_()
    at, mask = ut.tensor([0, 7, 2]), ut.tensor([True, False, True])
    y = ut._unsafe_masked_index(x, mask, [None, at], -1.0)
    assert y.tolist() == [[0.0, -1.0, 2.0], [3.0, -1.0, 5.0]]
    (g,) = ut.autograd.grad(y.sum(), x)
    assert g.tolist() == [[1.0, 0.0, 1.0]] * 2
    z = ut._unsafe_masked_index_put_accumulate(x, mask, [None, at], ut.ones(2, 3))
    assert (z - x).tolist() == [[1.0, 0.0, 1.0]] * 2
    assert ut._unsafe_index(x, [ut.tensor([1]), None]).tolist() == [[3.0, 4.0, 5.0]]


def test_chunks() -> None:
    """Each tensor in so many chunks, zeros behind, beside those of the others."""
    a, b = ut.arange(6).reshape(3, 2), ut.arange(4).reshape(4, 1)
    assert ut._chunk_cat([a, b], 0, 2).tolist() == [[0, 1, 2, 3, 0, 1], [4, 5, 0, 0, 2, 3]]
    assert ut._chunk_cat([a], 1, 2).tolist() == [[[0], [1]], [[2], [3]], [[4], [5]]]
    with pytest.raises(ValueError, match="num_chunks must be at least 1, got 0"):
        ut._chunk_cat([a], 0, 0)
    with pytest.raises(ValueError, match="at least one tensor"):
        ut._chunk_cat([], 0, 1)
    with pytest.raises(ValueError, match="must agree before dim 1"):
        ut._chunk_cat([a, b], 1, 1)


def test_kernels_for_cuda() -> None:
    """They can be made anywhere, and called where there is a device."""
    from undertow.cuda import jiterator

    made = jiterator._create_jit_fn("template <typename T> T f(T x) { return x; }", alpha=1)
    several = jiterator._create_multi_output_jit_fn("…", 2)
    for kernel in (made, several):
        with pytest.raises(RuntimeError, match="CUDA devices only"):
            kernel(ut.ones(2))


def test_an_operator_is_one_of_its_kind() -> None:
    """Copies of operators, deep ones as well, are the operators."""
    import copy

    packet = ut.ops.aten.add
    assert copy.copy(packet) is copy.deepcopy(packet) is packet
    assert copy.copy(packet.Tensor) is copy.deepcopy(packet.Tensor) is packet.Tensor


def test_gradient_of_a_pool_by_its_indices() -> None:
    """The operator that torch's engine calls gives what ours gives."""
    x = ut.rand(1, 2, 4, 4, dtype=ut.float64, requires_grad=True)
    y, at = F.max_pool2d(x, 2, return_indices=True)
    g = ut.rand(1, 2, 2, 2, dtype=ut.float64)
    (wanted,) = ut.autograd.grad(y, x, g)
    pooled = ut.ops.aten.max_pool2d_with_indices_backward
    assert pooled(g, x, [2, 2], [2, 2], [0, 0], [1, 1], False, at).tolist() == wanted.tolist()


def test_samples_of_dirichlet_have_gradients() -> None:
    given = ut.tensor([0.5, 2.0, 3.0], dtype=ut.float64, requires_grad=True)
    found = []
    for draw in (ut._sample_dirichlet, lambda c: ut.distributions.Dirichlet(c).rsample()):
        ut.manual_seed(0)
        y = draw(given)
        found.append((y.tolist(), ut.autograd.grad(y[0], given)[0].tolist()))
    assert found[0] == found[1]
    assert any(found[0][1])
