"""What the op table cannot say about softmax, losses and sampling: limits, laws, randomness."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.autograd import grad, gradcheck, gradgradcheck

F = ut.nn.functional
INF = float("inf")


def double(values: Any, requires_grad: bool = True) -> ut.Tensor:
    return ut.tensor(np.array(values, np.float64), requires_grad=requires_grad)


def random(*shape: int, seed: int = 0) -> ut.Tensor:
    return double(np.random.default_rng(seed).standard_normal(shape))


# Nothing to average --------------------------------------------------------------------------
@pytest.mark.parametrize(
    "loss, target",
    [
        (F.mse_loss, ut.zeros(0, 3)),
        (F.cross_entropy, ut.zeros(0, dtype=ut.int64)),
        (F.nll_loss, ut.zeros(0, dtype=ut.int64)),
        (F.multi_margin_loss, ut.zeros(0, dtype=ut.int64)),
        (F.multilabel_margin_loss, ut.zeros(0, 3, dtype=ut.int64)),
        (F.binary_cross_entropy, ut.zeros(0, 3)),
    ],
)
def test_the_mean_of_an_empty_batch_is_nan_and_the_sum_zero(loss: Any, target: Any) -> None:
    x = ut.zeros(0, 3, requires_grad=True)
    assert np.isnan(loss(x, target).item())
    total = loss(x, target, reduction="sum")
    assert total.item() == 0
    total.backward()
    assert x.grad.shape == (0, 3)


@pytest.mark.parametrize("weight", [None, ut.tensor([1.0, 2.0])])
def test_all_targets_ignored(weight: Any) -> None:
    x = ut.zeros(3, 2, requires_grad=True)
    target = ut.tensor([-100, -100, -100])
    assert np.isnan(F.cross_entropy(x, target, weight).item())
    total = F.cross_entropy(x, target, weight, reduction="sum")
    total.backward()
    assert total.item() == 0
    np.testing.assert_array_equal(x.grad.numpy(), 0)


# Numbers at their limits ---------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [ut.float16, ut.bfloat16, ut.float32, ut.float64])
def test_softmax_of_large_logits(dtype: Any) -> None:
    x = ut.tensor([[3e4, 3e4, -3e4], [-3e4, -3e4, -3e4]], dtype=dtype)
    np.testing.assert_allclose(
        x.softmax(1).to(ut.float64).numpy(), [[0.5, 0.5, 0], [1 / 3] * 3], rtol=4e-3
    )
    found = x.log_softmax(1).to(ut.float64).numpy()
    np.testing.assert_allclose(found[1], -np.log(3), rtol=4e-3)
    assert x.softmax(1).dtype is dtype


def test_softmax_where_nothing_is_possible_is_nan() -> None:
    assert np.isnan(ut.tensor([-INF, -INF]).softmax(0).numpy()).all()


def test_impossible_classes_keep_the_gradient_finite() -> None:
    logits = double([[0.5, -INF, 1.0], [-INF, 2.0, -INF]])
    loss = F.cross_entropy(logits, ut.tensor([0, 1]))
    (first,) = grad(loss, logits, create_graph=True)
    p = np.exp([0.5, 1.0]) / np.exp([0.5, 1.0]).sum()
    np.testing.assert_allclose(
        first.detach().numpy(), [[(p[0] - 1) / 2, 0, p[1] / 2], [0, 0, 0]], atol=1e-15
    )
    (second,) = grad(first[0, 0], logits)
    np.testing.assert_allclose(
        second.numpy(), [[p[0] * p[1] / 2, 0, -p[0] * p[1] / 2], [0, 0, 0]], atol=1e-15
    )


def test_an_impossible_target_costs_infinity() -> None:
    assert F.cross_entropy(ut.tensor([[-INF, 0.0]]), ut.tensor([0])).item() == INF


def test_bce_of_certain_probabilities_is_finite() -> None:
    p = double([0.0, 1.0, 0.0, 1.0])
    loss = F.binary_cross_entropy(p, double([0, 1, 1, 0], False), reduction="none")
    np.testing.assert_array_equal(loss.detach().numpy(), [0, 0, 100, 100])
    loss.sum().backward()
    np.testing.assert_allclose(p.grad.numpy(), [0, 0, -1e12, 1e12])


def test_bce_with_logits_is_accurate_far_out() -> None:
    x = double([1000.0, -1000.0, 1000.0, -1000.0, 40.0])
    t = double([0, 1, 1, 0, 1], False)
    loss = F.binary_cross_entropy_with_logits(x, t, reduction="none")
    np.testing.assert_allclose(loss.detach().numpy(), [1000, 1000, 0, 0, np.exp(-40)], rtol=1e-12)
    loss.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [1, -1, 0, 0, -np.exp(-40)], rtol=1e-9, atol=1e-20)


def test_soft_margin_does_not_overflow() -> None:
    x = double([-1000.0, 1000.0])
    loss = F.soft_margin_loss(x, double([1, 1], False), reduction="none")
    np.testing.assert_array_equal(loss.detach().numpy(), [1000, 0])
    loss.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [-1, 0])


def test_kl_div_of_impossible_outcomes() -> None:
    log_q = double(np.log([0.25, 0.25, 0.5]))
    loss = F.kl_div(log_q, double([0.5, 0.0, 0.5], False), reduction="sum")
    np.testing.assert_allclose(loss.item(), 0.5 * np.log(2))
    loss.backward()
    np.testing.assert_allclose(log_q.grad.numpy(), [-0.5, 0, -0.5])


def test_gaussian_variance_below_eps() -> None:
    var = double([1e-9])
    loss = F.gaussian_nll_loss(double([1.0]), double([1.5]), var, eps=0.25)
    np.testing.assert_allclose(loss.item(), 0.5 * (np.log(0.25) + 1))
    loss.backward()
    np.testing.assert_allclose(var.grad.numpy(), [0.5 * (1 / 0.25 - 0.25 / 0.25**2)])
    np.testing.assert_array_equal(var.detach().numpy(), [1e-9])  # the caller's tensor is untouched


def test_gaussian_variance_of_integers_is_no_integer() -> None:
    loss = F.gaussian_nll_loss(ut.tensor([1, 2]), ut.tensor([2, 2]), 0.5)
    np.testing.assert_allclose(loss.item(), 0.5 * (np.log(0.5) + 1), rtol=1e-6)


def test_poisson_stirling_of_small_targets_has_a_finite_gradient() -> None:
    target = double([0.0, 1.0, 4.0])
    F.poisson_nll_loss(double([0.5] * 3), target, full=True).backward()
    assert np.isfinite(target.grad.numpy()).all()


# Laws ----------------------------------------------------------------------------------------
def test_class_indices_and_probabilities_agree() -> None:
    x, target = random(4, 3, 2), ut.tensor([[0, 2], [1, 1], [2, 0], [0, 0]])
    rows = F.one_hot(target, 3).permute(0, 2, 1).to(ut.float64)
    for smoothing in (0.0, 0.2):
        a = F.cross_entropy(x, target, label_smoothing=smoothing, reduction="none")
        b = F.cross_entropy(x, rows, label_smoothing=smoothing, reduction="none")
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-12)


def test_smaller_integer_targets_are_accepted() -> None:
    x = random(3, 4)
    expected = F.cross_entropy(x, ut.tensor([0, 3, 1])).item()
    for dtype in (ut.int32, ut.uint8):
        assert F.cross_entropy(x, ut.tensor([0, 3, 1], dtype=dtype)).item() == expected


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_third_order(name: str) -> None:
    """The rules' rules are right as well."""
    x = random(2, 3)

    def first(x: ut.Tensor) -> ut.Tensor:
        return grad((getattr(x, name)(1) ** 3).sum(), x, create_graph=True)[0]

    assert gradgradcheck(first, x)


def test_attention_dropout_keeps_the_mean_and_drops_weights() -> None:
    ut.manual_seed(1)
    q, k, v = ut.zeros(2000, 1, 2), ut.zeros(2000, 4, 2), ut.ones(2000, 4, 1)
    out = F.scaled_dot_product_attention(q, k, v, dropout_p=0.5).numpy().ravel()
    assert set(np.round(out, 6)) <= {0.0, 0.5, 1.0, 1.5, 2.0}
    assert abs(out.mean() - 1) < 0.05


def test_causal_attention_sees_no_future() -> None:
    q, k, v = random(1, 5, 3), random(1, 5, 3, seed=1), random(1, 5, 2, seed=2)
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    (seen,) = grad(out[0, 2].sum(), v)
    assert (seen.numpy()[0, :3] != 0).all()
    assert (seen.numpy()[0, 3:] == 0).all()


# Gumbel --------------------------------------------------------------------------------------
def test_gumbel_samples_follow_the_distribution() -> None:
    ut.manual_seed(0)
    p = np.array([0.1, 0.2, 0.7])
    hard = F.gumbel_softmax(ut.tensor(np.log(p)).expand(20000, 3), tau=0.3, hard=True)
    np.testing.assert_array_equal(hard.sum(1).numpy(), 1)
    np.testing.assert_allclose(hard.mean(0).numpy(), p, atol=0.015)


def test_hard_samples_have_the_soft_gradient() -> None:
    x, g = random(4, 3), random(4, 3, seed=1).detach()
    grads = []
    for hard in (False, True):
        ut.manual_seed(5)
        grads.append(grad(F.gumbel_softmax(x, hard=hard), x, g)[0].numpy())
    np.testing.assert_array_equal(*grads)
    assert np.abs(grads[0]).max() > 0


# CTC -----------------------------------------------------------------------------------------
def ctc_case(steps: int = 12) -> tuple[ut.Tensor, ut.Tensor, list[int], list[int]]:
    return (
        ut.log_softmax(random(steps, 3, 4), -1).detach().requires_grad_(),
        ut.tensor([[1, 1, 2], [3, 2, 1], [1, 1, 1]]),
        [steps, steps - 2, 4],  # the last does not fit: 1 _ 1 _ 1 needs five frames
        [3, 2, 3],
    )


def test_every_frame_of_an_alignment_says_one_thing() -> None:
    """The gradient is minus the posterior, which adds up to one in every frame that counts."""
    log_p, targets, frames, sizes = ctc_case()
    loss = F.ctc_loss(log_p, targets, frames, sizes, reduction="none", zero_infinity=True)
    loss.sum().backward()
    expected = np.zeros((12, 3))
    expected[:12, 0] = expected[:10, 1] = -1
    np.testing.assert_allclose(log_p.grad.sum(-1).numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("zero_infinity", [False, True])
def test_targets_that_do_not_fit(zero_infinity: bool) -> None:
    log_p, targets, frames, sizes = ctc_case()
    loss = F.ctc_loss(log_p, targets, frames, sizes, 0, "none", zero_infinity)
    assert loss[2].item() == (0 if zero_infinity else INF)
    assert np.isfinite(loss[:2].detach().numpy()).all()
    loss.sum().backward()
    np.testing.assert_array_equal(log_p.grad[:, 2].numpy(), 0)


def test_impossible_labels_keep_ctc_gradients_finite_to_second_order() -> None:
    log_p = double(np.full((4, 1, 3), -1.0))
    with ut.no_grad():
        log_p[0, 0, 0] = log_p[2, 0, 1] = -INF
    loss = F.ctc_loss(log_p, ut.tensor([[1, 2]]), [4], [2])
    (first,) = grad(loss, log_p, create_graph=True)
    (second,) = grad((first * first).sum(), log_p)
    assert np.isfinite(first.detach().numpy()).all()
    assert np.isfinite(second.numpy()).all()


def test_ctc_third_order() -> None:
    log_p, targets, _, sizes = ctc_case(5)

    @ut.enable_grad()
    def first(x: ut.Tensor) -> ut.Tensor:
        return grad(F.ctc_loss(x, targets, [5, 4, 5], sizes), x, create_graph=True)[0]

    assert gradcheck(first, log_p)
    assert gradgradcheck(first, log_p, fast_mode=True)


def test_ctc_of_no_frames() -> None:
    log_p = ut.zeros(2, 2, 3)
    loss = F.ctc_loss(log_p, ut.tensor([[1], [1]]), [0, 0], [0, 1], reduction="none")
    np.testing.assert_array_equal(loss.numpy(), [0, INF])


# Sampling ------------------------------------------------------------------------------------
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_a_grid_without_numbers_does_not_crash(mode: str, padding: str) -> None:
    grid = double([[[[np.nan, 0.0], [INF, -INF], [0.0, 0.0]]]], False)
    out = F.grid_sample(ut.ones(1, 1, 3, 3, dtype=ut.float64), grid, mode, padding)
    assert np.isfinite(out.numpy()[..., 2]).all()


def test_the_identity_grid_gives_the_image_back() -> None:
    image = random(2, 3, 4, 5)
    theta = double([[[1, 0, 0], [0, 1, 0]]] * 2)
    for corners in (False, True):
        grid = F.affine_grid(theta, image.shape, corners)
        for mode in ("bilinear", "nearest", "bicubic"):
            out = F.grid_sample(image, grid, mode, align_corners=corners)
            np.testing.assert_allclose(out.detach().numpy(), image.detach().numpy(), atol=1e-12)


def test_points_of_nearest_pixels_have_a_gradient_of_zeros() -> None:
    image, theta = random(1, 2, 4, 5), double([[[1, 0.1, 0], [0, 1, 0.1]]])
    out = F.grid_sample(image, F.affine_grid(theta, (1, 2, 3, 3), False), "nearest")
    slopes = ut.autograd.grad(out.square().sum(), [image, theta], create_graph=True)
    assert slopes[1].tolist() == [[[0.0, 0.0, 0.0]] * 2]
    plain = ut.autograd.grad(
        F.grid_sample(image, F.affine_grid(theta.detach(), (1, 2, 3, 3), False), "nearest")
        .square()
        .sum(),
        image,
    )
    assert slopes[0].tolist() == plain[0].tolist()


@pytest.mark.parametrize("loss", [F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss])
def test_a_target_that_is_broadcast_is_warned_of(loss):
    """(N, 1) beside (N) is N × N, and hardly ever meant."""
    with pytest.warns(UserWarning, match="different to the input size"):
        loss(ut.zeros(3, 1), ut.zeros(3))


def test_means_of_nothing_are_quiet():
    """NaN, without a warning of NumPy's."""
    nothing = ut.tensor([-100] * 4)
    assert F.cross_entropy(ut.zeros(4, 3), nothing).isnan()
    assert F.nll_loss(ut.zeros(4, 3), nothing).isnan()
    assert ut.zeros(0).mean().isnan()
    assert ut.zeros(2, 0).mean(1).isnan().all()


def test_multi_margin_loss_of_one_sample_has_its_targets_shape() -> None:
    x = ut.randn(5)
    loss = ut.nn.functional.multi_margin_loss
    assert loss(x, ut.tensor([2]), reduction="none").shape == (1,)
    assert loss(x, ut.tensor(2), reduction="none").shape == ()
    assert loss(x, ut.tensor([2])).shape == ()


def test_ctc_loss_of_no_input_has_gradient_zero() -> None:
    x = ut.randn(2, 3, 5).log_softmax(2).requires_grad_()
    targets = ut.tensor([[1, 2]] * 3)
    loss = ut.nn.functional.ctc_loss(x, targets, [0] * 3, [0, 1, 2], reduction="none")
    assert loss.tolist() == [0.0, float("inf"), float("inf")]
    loss.sum().backward()
    assert x.grad is not None
    assert not x.grad.any()


@pytest.mark.parametrize("method", ["aspect_ratio:", "aspect_ratio:0", "aspect_ratio:x", "rows"])
def test_methods_of_chunking_that_there_are_not(method: str) -> None:
    with pytest.raises(ut.errors.ArgumentError, match="chunking_method"):
        ut.nn.LinearCrossEntropyOptions(chunking_method=method)
