"""Functional derivatives against mathematics; gradcheck against wrong derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.autograd import Function, GradcheckError, grad, gradcheck, gradgradcheck
from undertow.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp
from undertow.errors import ArgumentError, DTypeError, GradientError, ShapeError

A = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
X = np.array([0.5, -1.0, 2.0])


def double(values: Any) -> ut.Tensor:
    return ut.tensor(values, dtype=ut.float64)


def close(a: Any, b: Any) -> None:
    assert a.shape == np.shape(b)
    np.testing.assert_allclose(a.detach().numpy(), b, rtol=1e-10, atol=1e-12)


def f(x: Any) -> Any:
    return double(A) @ (x * x)


JF = A * (2 * X)  # its Jacobian at X


# Products and matrices -----------------------------------------------------------------------
def test_vjp_and_jvp() -> None:
    v, w = np.array([1.0, -2.0]), np.array([3.0, 1.0, -1.0])
    out, g = vjp(f, double(X), double(v))
    close(out, A @ X**2)
    close(g, v @ JF)
    out, t = jvp(f, double(X), double(w))
    close(out, A @ X**2)
    close(t, JF @ w)
    assert not out.requires_grad
    assert not g.requires_grad
    assert not t.requires_grad


def test_v_can_be_left_out_for_one_element() -> None:
    close(vjp(lambda x: x.sum(), double(X))[1], [1, 1, 1])
    close(jvp(lambda x: x * ut.ones(3, dtype=ut.float64), double([2.0]))[1], [1, 1, 1])
    with pytest.raises(ArgumentError, match=r"\(2,\)"):
        vjp(f, double(X))
    with pytest.raises(ArgumentError, match=r"\(3,\)"):
        jvp(f, double(X))


def two(x: Any, y: Any) -> Any:
    return (x * y).sum(), x.exp(), y * 3


def test_tuples_in_and_out() -> None:
    x, y = double(X), double(X + 1)
    v = (double(2.0), double([1.0, 2.0, 3.0]), double([4.0, 5.0, 6.0]))
    outs, (gx, gy) = vjp(two, (x, y), v)
    assert isinstance(outs, tuple)
    assert len(outs) == 3
    close(gx, 2 * (X + 1) + np.array([1, 2, 3]) * np.exp(X))
    close(gy, 2 * X + 3 * np.array([4.0, 5, 6]))
    u = (double([1.0, 0.0, -1.0]), double([2.0, 2.0, 2.0]))
    outs, (a, b, c) = jvp(two, (x, y), u)
    close(a, (u[0].numpy() * (X + 1) + u[1].numpy() * X).sum())
    close(b, np.exp(X) * u[0].numpy())
    close(c, np.full(3, 6.0))
    rows = jacobian(two, (x, y))
    assert len(rows) == 3
    assert all(len(r) == 2 for r in rows)
    close(rows[0][0], X + 1)
    close(rows[1][0], np.diag(np.exp(X)))
    close(rows[1][1], np.zeros((3, 3)))
    close(rows[2][1], 3 * np.eye(3))


def test_jacobian() -> None:
    close(jacobian(f, double(X)), JF)
    for options in ({"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}):
        close(jacobian(f, double(X), **options), JF)
    close(jacobian(lambda x: (x * x).sum(), double(X)), 2 * X)
    matrix = jacobian(lambda x: x.view(2, 1) * x, double([1.0, 2.0]))
    assert matrix.shape == (2, 2, 2)
    close(jacobian(lambda x: x[:0], double(X)), np.zeros((0, 3)))
    assert isinstance(jacobian(f, (double(X),)), tuple)
    with pytest.raises(ArgumentError):
        jacobian(f, double(X), strategy="sideways")


def cubic(x: Any) -> Any:
    return (x * x * x).sum() + x[0] * x[1] * x[2]


def HC() -> Any:
    x, y, z = X
    return np.array([[6 * x, z, y], [z, 6 * y, x], [y, x, 6 * z]])


def test_hessian_and_products() -> None:
    v = np.array([1.0, -2.0, 0.5])
    close(hessian(cubic, double(X)), HC())
    for product in (hvp, vhp):
        out, r = product(cubic, double(X), double(v))
        close(out, cubic(double(X)).numpy())
        close(r, HC() @ v)
    close(hessian(lambda x: x.sum().reshape(1), double(X)), np.zeros((3, 3)))


def test_hessian_of_several_inputs() -> None:
    def g(x: Any, y: Any) -> Any:
        return (x * x * y).sum()

    x, y = double([1.0, 2.0]), double([3.0, 4.0])
    (xx, xy), (yx, yy) = hessian(g, (x, y))
    close(xx, np.diag([6.0, 8.0]))
    close(xy, np.diag([2.0, 4.0]))
    close(yx, np.diag([2.0, 4.0]))
    close(yy, np.zeros((2, 2)))
    v = (double([1.0, 1.0]), double([1.0, -1.0]))
    for product in (hvp, vhp):
        _, (a, b) = product(g, (x, y), v)
        close(a, [6 + 2, 8 - 4])
        close(b, [2, 4])


@pytest.mark.parametrize("way", [vjp, jvp, vhp, hvp])
def test_create_graph_differentiates_through_the_inputs(way: Any) -> None:
    v = double([1.0, -2.0, 0.5])
    vector = double(1.0) if way is vjp else v
    x = double(X).requires_grad_()

    def g(x: Any) -> Any:
        return way(cubic, x, vector, create_graph=True)[1]

    assert g(x).requires_grad
    assert gradcheck(g, (x,))
    assert gradcheck(lambda x: g(x * 2), (x,))


def test_create_graph_of_jacobian_and_hessian() -> None:
    x = double(X).requires_grad_()
    assert gradcheck(lambda x: jacobian(f, x, create_graph=True), (x,))
    assert gradcheck(lambda x: hessian(cubic, x, create_graph=True), (x,))
    third = jacobian(lambda x: hessian(cubic, x, create_graph=True), double(X))
    close(third[0][0], [6, 0, 0])
    close(third[0][1], [0, 0, 1])


def test_strict() -> None:
    x = double(X)
    constant = lambda x: double([1.0, 2.0])
    close(vjp(constant, x, double([1.0, 1.0]))[1], [0, 0, 0])
    close(jvp(constant, x, double(X))[1], [0, 0])
    close(jacobian(constant, x), np.zeros((2, 3)))
    for run in (
        lambda: vjp(constant, x, double([1.0, 1.0]), strict=True),
        lambda: jvp(constant, x, double(X), strict=True),
        lambda: jacobian(constant, x, strict=True),
        lambda: hessian(lambda x: x.sum(), x, strict=True),
        lambda: hvp(lambda x: x.sum(), x, x, strict=True),
        lambda: vhp(lambda x: x.sum(), x, x, strict=True),
        lambda: jacobian(lambda x, y: x, (x, x), strict=True),
        lambda: vjp(lambda x: x * 2, x.requires_grad_(), x.detach(), True, strict=True),
    ):
        with pytest.raises(GradientError, match="depend"):
            run()


def test_wrong_arguments() -> None:
    x = double(X)
    with pytest.raises(DTypeError, match="inputs is a float"):
        vjp(f, 1.0)
    with pytest.raises(DTypeError, match="element 1 of inputs"):
        vjp(f, (x, 1.0))
    with pytest.raises(DTypeError, match="output of the function"):
        vjp(lambda x: 1.0, x)
    with pytest.raises(ShapeError, match=r"\(3,\).*\(2,\)"):
        vjp(f, x, x)
    with pytest.raises(ArgumentError, match="2 tensors for 1"):
        jvp(f, x, (x, x))
    for run in (hessian, hvp, vhp):
        with pytest.raises(GradientError, match=r"one element.*\(2,\)"):
            run(f, x) if run is hessian else run(f, x, x)


def test_inputs_are_left_alone() -> None:
    x = double(X).requires_grad_()
    for run in (lambda: jacobian(f, x), lambda: hessian(cubic, x), lambda: hvp(cubic, x, x)):
        run()
        assert x.grad is None
        assert x.is_leaf
    with ut.no_grad():
        close(jacobian(f, x), JF)


def test_devices() -> None:
    x = ut.tensor(X, device="reference")
    assert str(hessian(cubic, x).device) == "reference"
    np.testing.assert_allclose(hessian(cubic, x).cpu().numpy(), HC())


# gradcheck must be able to fail --------------------------------------------------------------
def with_rule(rule: Any) -> Any:
    class Square(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return rule(g, x)

    return Square.apply


def leaf() -> ut.Tensor:
    return double([[0.5, -1.5], [2.0, 3.0]]).requires_grad_()


right = with_rule(lambda g, x: g * 2 * x)
fast = pytest.mark.parametrize("fast_mode", [False, True])


@fast
def test_right_gradients_pass(fast_mode: bool) -> None:
    x = leaf()
    assert gradcheck(right, (x,), fast_mode=fast_mode, check_forward_ad=True)
    assert gradgradcheck(right, (x,), fast_mode=fast_mode, check_fwd_over_rev=True)
    assert gradgradcheck(right, x, gen_non_contig_grad_outputs=True, fast_mode=fast_mode)
    assert gradgradcheck(right, x, ut.ones_like(x), fast_mode=fast_mode)
    assert gradcheck(two, (double(X).requires_grad_(), double(X).requires_grad_()))
    assert x.grad is None


@fast
@pytest.mark.parametrize(
    "rule",
    [
        lambda g, x: g * 2.01 * x,  # wrong scale
        lambda g, x: -g * 2 * x,  # wrong sign
        lambda g, x: g * 2 * x.t(),  # wrong layout
        lambda g, x: g * 0,  # nothing
        lambda g, x: None,  # nothing at all
        lambda g, x: g * 2 * x + 0.1,  # not linear in g
        lambda g, x: g * float("nan"),
        lambda g, x: (g * 2 * x).sum().expand(2, 2),
    ],
)
def test_wrong_gradients_are_caught(rule: Any, fast_mode: bool) -> None:
    x = leaf()
    with pytest.raises(GradcheckError, match=r"is .* by backward but .* by finite differences"):
        gradcheck(with_rule(rule), (x,), fast_mode=fast_mode)
    assert not gradcheck(with_rule(rule), (x,), fast_mode=fast_mode, raise_exception=False)


def test_the_message_shows_the_numbers() -> None:
    x = leaf()
    with pytest.raises(GradcheckError) as caught:
        gradcheck(with_rule(lambda g, x: g * 3 * x), (x,))
    message = str(caught.value)
    assert "output 0 at (1, 1) by input 0 at (1, 1)" in message
    assert "is 9 by backward but 6 by" in message.replace("6.0000000", "6")
    assert "4 of 16" in message


@fast
def test_lost_history_is_caught(fast_mode: bool) -> None:
    x = leaf()
    with pytest.raises(GradcheckError, match="does not require gradients but changes"):
        gradcheck(lambda x: x.detach() * 2, (x,), fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="does not require gradients but changes"):
        gradcheck(lambda x: (x * 2, x.detach() * 2), (x,), fast_mode=fast_mode)
    with pytest.raises(GradcheckError):  # a part of the path
        gradcheck(lambda x: x * x.detach(), (x,), fast_mode=fast_mode)
    assert gradcheck(lambda x: (x * 2, (x > 0).to(x.dtype)), (x,), fast_mode=fast_mode)


@fast
def test_wrong_only_in_second_order(fast_mode: bool) -> None:
    x = leaf()
    for rule in (
        lambda g, x: g * 2 * x.detach(),  # detached
        lambda g, x: (g.detach() * 2 * x + g * 2 * x.detach()) / 2,  # each half by one path
    ):
        assert gradcheck(with_rule(rule), (x,), fast_mode=fast_mode)
        with pytest.raises(GradcheckError):
            gradgradcheck(with_rule(rule), (x,), fast_mode=fast_mode)
    wrong = with_rule(lambda g, x: g * with_rule(lambda g, x: g * 3)(x) / x * 2)
    assert gradcheck(wrong, (x,), fast_mode=fast_mode)
    with pytest.raises(GradcheckError):
        gradgradcheck(wrong, (x,), fast_mode=fast_mode)


def test_wrong_only_with_create_graph() -> None:
    def rule(g: Any, x: Any) -> Any:
        return g * 2 * x * (2 if ut.is_grad_enabled() else 1)

    with pytest.raises(GradcheckError, match="create_graph=True"):
        gradcheck(with_rule(rule), (leaf(),))


def test_wrong_only_when_a_gradient_is_missing() -> None:
    class Pair(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            if g is None or h is None:
                return (g * 2) if h is None else h * 3
            return g * 2 + h * 5

    with pytest.raises(GradcheckError, match="from all outputs"):
        gradcheck(Pair.apply, (leaf(),))
    assert gradcheck(Pair.apply, (leaf(),), check_undefined_grad=False)


def test_randomness_is_caught() -> None:
    x = leaf()
    with pytest.raises(GradcheckError, match="not the same twice"):
        gradcheck(lambda x: x * ut.rand(2, 2, dtype=ut.float64), (x,))
    calls: list[int] = []

    def rule(g: Any, x: Any) -> Any:
        calls.append(1)
        return g * 2 * x + 1e-7 * len(calls)

    with pytest.raises(GradcheckError, match="gradient of input 0 is not the same twice"):
        gradcheck(with_rule(rule), (x,))
    calls.clear()
    assert gradcheck(with_rule(rule), (x,), nondet_tol=1e-3)


def test_wrong_forward_mode_is_caught() -> None:
    """jvp goes through the second order in g only."""
    rule = lambda g, x: g * 2 * x.detach() + (g * 0).detach()
    half = with_rule(lambda g, x: (g.detach() + g) * x)
    assert gradcheck(with_rule(rule), (leaf(),), check_forward_ad=True)
    assert gradcheck(half, (leaf(),))
    with pytest.raises(GradcheckError, match="by jvp"):
        gradcheck(half, (leaf(),), check_forward_ad=True)


def test_the_function_may_differentiate_inside() -> None:
    def slope(x: Any) -> Any:
        assert ut.is_grad_enabled()
        return grad((x**3).sum(), x, create_graph=True)[0]

    with ut.no_grad():
        assert gradcheck(slope, (leaf(),))
        assert gradgradcheck(slope, (leaf(),))


def test_a_shape_or_dtype_that_depends_on_values_is_caught() -> None:
    """Both would broadcast against what was returned first."""
    x = double([1.0]).requires_grad_()
    for f in (
        lambda x: ut.cat([x, x]) if x.item() >= 1 else x,
        lambda x: x.float() if x.item() < 1 else x,
    ):
        with pytest.raises(GradcheckError, match="neither may depend on values"):
            gradcheck(f, (x,))
        assert not gradcheck(f, (x,), raise_exception=False)


def test_few_digits_are_a_warning() -> None:
    x = ut.tensor([0.5, 2.0], requires_grad=True)
    with pytest.warns(UserWarning, match="input 0 is undertow.float32"):
        assert gradcheck(right, (x,), eps=1e-2, atol=1e-2, rtol=1e-2)
    with (
        pytest.warns(UserWarning, match="float32"),
        pytest.raises(GradcheckError, match="by backward"),
    ):
        gradcheck(with_rule(lambda g, x: g * 3 * x), (x,), eps=1e-2, atol=1e-2, rtol=1e-2)
    assert x.tolist() == [0.5, 2.0]


def test_what_cannot_be_checked_is_an_error() -> None:
    x = leaf()
    with pytest.raises(ArgumentError, match="none of the inputs"):
        gradcheck(right, (double(X),))
    with pytest.raises(ArgumentError, match="no tensor"):
        gradcheck(lambda x: None, (x,))
    with pytest.raises(ArgumentError, match="expanded"):
        gradcheck(right, (double([1.0]).expand(3).requires_grad_(),))
    with pytest.raises(ArgumentError, match="in place"):
        gradcheck(lambda x: x.detach().add_(1) * x, (x,))
    assert gradcheck(right, (x,), check_batched_grad=True)
    with pytest.raises(ArgumentError):
        gradgradcheck(lambda x: x.detach(), (x,))


def test_empty_and_scalar_inputs() -> None:
    assert gradcheck(lambda x: x * 2, (ut.zeros(0, dtype=ut.float64, requires_grad=True),))
    assert gradcheck(lambda x: x[:0], (leaf(),))
    assert gradcheck(lambda x: x.exp(), (double(0.5).requires_grad_(),))
    assert gradcheck(lambda x, n, c: x * n * c, (leaf(), 3, double(X[:2])))


def test_inputs_are_restored() -> None:
    x = leaf()
    before, version = x.tolist(), x._version
    gradcheck(right, (x,))
    with pytest.raises(GradcheckError):
        gradcheck(with_rule(lambda g, x: g), (x,))

    def fails(x: Any) -> Any:
        calls.append(1)
        if len(calls) == 4:
            raise LookupError
        return x * 2

    calls: list[int] = []
    with pytest.raises(LookupError):
        gradcheck(fails, (x,))
    assert x.tolist() == before
    assert x._version == version


def test_non_contiguous_inputs() -> None:
    x = double(np.arange(12.0).reshape(3, 4))[:, ::2].requires_grad_()
    assert gradcheck(right, (x,))
    assert grad(right(x).sum(), x)[0].shape == (3, 2)


def test_strict_and_vectorized_exclude_each_other() -> None:
    for function in (jacobian, hessian):
        with pytest.raises(RuntimeError, match="either strict=True or vectorize=True"):
            function(lambda x: (x * x).sum(), double([1.0]), strict=True, vectorize=True)
