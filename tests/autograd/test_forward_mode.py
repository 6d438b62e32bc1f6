"""Forward mode: tangents of every op, by hand, in place, nested, and of custom functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut
import undertow.autograd.forward_ad as fw
from op_cases import cases, has_float
from op_samples import OpInfo, Sample
from transform_table import of_floats, same
from undertow.backends.base import Backend
from undertow.backends.dual import DualBackend
from undertow.func import grad, hessian, jacfwd, jacrev, jvp, linearize, vmap

close = ut.testing.assert_close


def number(*outputs: Any) -> Any:
    """A real number that depends on all of the results."""
    total: Any = 0
    for o in outputs:
        total = total + (o.real if o.is_complex() else o).sin().sum()
        if o.is_complex():
            total = total + o.imag.cos().sum()
    return total


@pytest.mark.parametrize("info, sample", cases(has_float, 3))
def test_jvp(info: OpInfo, sample: Sample) -> None:
    """The tangent is what two backward passes give, which are held against differences."""
    function, primals, tangents = of_floats(info, sample)
    if not primals or not function(*primals):
        return
    out, push = linearize(function, *primals)
    found, changes = jvp(function, primals, tangents)
    same(found, out)
    same(changes, push(*tangents))


_FEW = cases(lambda i, s: i.gradgrad and has_float(i, s), 10**6)


@pytest.mark.parametrize("info, sample", _FEW)
def test_forward_over_reverse_over_forward(info: OpInfo, sample: Sample) -> None:
    """Both orders of nesting give the second derivatives of two backward passes."""
    function, primals, tangents = of_floats(info, sample)
    if not primals or not function(*primals):
        return
    numbers = tuple(range(len(primals)))
    first = grad(lambda *xs: number(*function(*xs)), numbers)
    _, expected = linearize(first, *primals)
    same(jvp(first, primals, tangents)[1], expected(*tangents), 1e-5, 1e-7)
    along = grad(lambda *xs: number(*jvp(function, xs, tangents)[1]), numbers)
    twice = grad(lambda *xs: number(*linearize(function, *xs)[1](*tangents)), numbers)
    same(along(*primals), twice(*primals), 1e-5, 1e-7)


def test_levels_by_hand() -> None:
    x, t = ut.tensor([1.0, 2.0]), ut.tensor([3.0, 4.0])
    with fw.dual_level() as level:
        assert level == 0
        d = fw.make_dual(x, t)
        primal, tangent = fw.unpack_dual(d * d)
        close(primal, x * x)
        close(tangent, 2 * x * t)
        assert fw.unpack_dual(x).tangent is None
        assert fw.unpack_dual(d.detach()).tangent is None
        assert fw.unpack_dual(d > 1).tangent is None
        outer = d * 2
    close(outer, 2 * x)
    close(outer * outer, 4 * x * x)  # the tangent is forgotten
    assert fw.unpack_dual(outer).tangent is None
    assert fw.enter_dual_level() == 0
    fw.exit_dual_level()
    with pytest.raises(RuntimeError, match="no level to leave"):
        fw.exit_dual_level()
    with pytest.raises(RuntimeError, match="inside of dual_level"):
        fw.make_dual(x, t)


def test_make_dual_refuses() -> None:
    with fw.dual_level():
        with pytest.raises(ValueError, match=r"a tangent of \(3,\) does not fit \(2,\)"):
            fw.make_dual(ut.ones(2), ut.ones(3))
        with pytest.raises(TypeError, match=r"float64 does not fit .*float32"):
            fw.make_dual(ut.ones(2), ut.ones(2, dtype=ut.float64))
        with pytest.raises(ValueError, match="floating or complex"):
            fw.make_dual(ut.arange(2), ut.arange(2))
        with pytest.raises(RuntimeError, match="tangent of this level itself"):
            fw.make_dual(ut.ones(2), fw.make_dual(ut.ones(2), ut.ones(2)))


def test_no_tangent_is_lost() -> None:
    """What has no rule is an error, and so is a form outside of an op."""
    x = ut.tensor([1.0, 2.0])
    with fw.dual_level():
        d = fw.make_dual(x, x)
        from undertow.core.dispatch import apply
        from undertow.core.op import OPS

        with pytest.raises(RuntimeError, match="has no derivative"):
            apply(OPS["running_total"], (d,))
        with pytest.raises(RuntimeError, match="the tangent would be lost"):
            d._array.backend.reduce("sum", d._array, (0,), False)


@pytest.mark.parametrize("training", [False, True])
def test_running_statistics_are_constants(training: bool) -> None:
    """No tangent goes through them: an error, as for a gradient."""
    x, mean, var = ut.ones(2, 3), ut.zeros(3), ut.ones(3)

    def normed(mean: Any) -> Any:
        return ut.nn.functional.batch_norm(x, mean, var, training=training)

    with pytest.raises(ValueError, match="running_mean has no gradient"):
        jvp(normed, (mean,), (mean,))


def test_every_form_is_decided() -> None:
    """No form of a dual array is a composition, which would pass the tangent by."""
    for name, form in vars(Backend).items():
        if callable(form) and not name.startswith("_") and name not in ("run", "direct"):
            assert name in vars(DualBackend), name


def test_changes_in_place() -> None:
    x, t = ut.tensor([1.0, 2.0, 3.0]), ut.tensor([1.0, 10.0, 100.0])

    def function(x: Any) -> Any:
        y = ut.zeros(2, 3)
        y[0] = x * x
        y[1, 1:] += x[:2]
        z = x.clone()
        z.mul_(2).sin_()
        w = x * 1
        w[:2] = 0
        w.reshape(3)[2] *= x[0]
        return y, z, w

    ty, tz, tw = jvp(function, (x,), (t,))[1]
    close(ty, ut.stack([2 * x * t, ut.tensor([0.0, 1.0, 10.0])]))
    close(tz, (2 * x).cos() * 2 * t)
    close(tw, ut.tensor([0.0, 0.0, 100.0 + 3.0]))
    with fw.dual_level():
        d = fw.make_dual(x, t)
        base = ut.zeros(3)
        view = base[1:]
        with pytest.raises(NotImplementedError, match="memory that other tensors look at"):
            base.copy_(d)
        del view
        base.copy_(d)
        close(fw.unpack_dual(base).tangent, t)


def test_views_share_tangents() -> None:
    x = ut.arange(6.0)
    with fw.dual_level():
        d = fw.make_dual(x.clone(), x)
        rows = d.reshape(2, 3)
        turned = rows.T
        d[0] = 5.0
        close(fw.unpack_dual(turned).tangent[0, 0], ut.tensor(0.0))
        turned[1, 1] = turned[2, 1] * 2
        close(fw.unpack_dual(d).tangent[4], 2 * x[5])


def test_nesting() -> None:
    x, t = ut.tensor([1.0, 2.0, 3.0], dtype=ut.float64), ut.ones(3, dtype=ut.float64) * 2

    def along(f: Any) -> Any:
        return lambda x: jvp(f, (x,), (t,))[1]

    close(along(along(along(along(ut.sin))))(x), x.sin() * 16)
    close(along(along(along(lambda x: x**4)))(x), 24 * x * 8)
    close(hessian(lambda x: (x**3).sum())(x), ut.diag(6 * x))
    close(jacfwd(jacfwd(lambda x: x**3))(x), jacrev(jacrev(lambda x: x**3))(x))
    close(vmap(hessian(lambda x: x.prod()), loop=False)(ut.stack([x, t]))[1, 0, 1], t[2])
    # A level inside does not see the tangents of another one.
    close(jvp(lambda x: jvp(lambda y: x * y, (t,), (t,))[1], (x,), (t,))[1], t * t)


def test_trees_aux_and_outputs_that_do_not_vary() -> None:
    x = ut.tensor([1.0, 2.0])
    _, change, aux = jvp(
        lambda d: ({"a": d["x"] ** 2, "b": ut.ones(3)}, d["x"] + 1), ({"x": x},), ({"x": x},),
        has_aux=True,
    )  # fmt: skip
    close(change, {"a": 2 * x * x, "b": ut.zeros(3)})
    close(aux, x + 1)
    with pytest.raises(RuntimeError, match="strict=True"):
        jvp(lambda x: ut.ones(2), (x,), (x,), strict=True)


class Cube(ut.autograd.Function):
    """By NumPy, with rules of its own."""

    @staticmethod
    def forward(x: Any) -> Any:
        return ut.tensor(x.detach().numpy() ** 3)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * g * x * x

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * t * x * x

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any) -> Any:
        assert info.batch_size == 2
        return Cube.apply(x), in_dims[0]


class PlainCube(ut.autograd.Function):
    """Without a rule for tangents, nor for batches."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.x = x
        return x**3

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 3 * g * ctx.x * ctx.x


@pytest.mark.parametrize("cube", [Cube, PlainCube])
def test_custom_functions(cube: Any) -> None:
    x = ut.tensor([1.0, 2.0, 3.0], dtype=ut.float64)
    t = ut.tensor([1.0, 1.0, 2.0], dtype=ut.float64)
    close(jvp(cube.apply, (x,), (t,))[1], 3 * x * x * t)
    close(jvp(grad(lambda x: (cube.apply(x) ** 2).sum()), (x,), (t,))[1], 30 * x**4 * t)
    close(grad(lambda x: jvp(cube.apply, (x,), (t,))[1].sum())(x), 6 * x * t)
    both = ut.stack([x, t])
    close(vmap(cube.apply, loop=False)(both), both**3)
    close(vmap(grad(lambda x: cube.apply(x).sum()), loop=False)(both), 3 * both**2)
    x.requires_grad_()
    assert ut.autograd.gradcheck(cube.apply, x, check_forward_ad=True)
    assert ut.autograd.gradgradcheck(cube.apply, x, check_fwd_over_rev=True)


def test_gradcheck_finds_a_wrong_jvp() -> None:
    class Wrong(PlainCube):
        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t

    x = ut.tensor([1.0, 2.0], dtype=ut.float64, requires_grad=True)
    assert ut.autograd.gradcheck(Wrong.apply, x)
    with pytest.raises(RuntimeError, match="jvp"):
        ut.autograd.gradcheck(Wrong.apply, x, check_forward_ad=True)


def test_gradients_of_leaves_have_tangents_inside_a_level() -> None:
    """Forward over reverse by hand: what arrives at a plain leaf may have a tangent."""
    x, v = ut.tensor([1.0, 2.0], requires_grad=True), ut.tensor([1.0, 0.5])
    with fw.dual_level():
        for times in (1, 2):  # the second one adds to what is there
            (fw.make_dual(x, v) ** 3).sum().backward()
            assert x.grad is not None
            primal, tangent = fw.unpack_dual(x.grad)
            np.testing.assert_allclose(primal.numpy(), times * 3 * np.array([1, 4]))
            assert tangent is not None
            np.testing.assert_allclose(tangent.numpy(), times * np.array([6.0, 6.0]))
    np.testing.assert_allclose(x.grad.numpy(), [6, 24])
    (x * 2).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [8, 26])


def test_gradcheck_wants_something_to_check() -> None:
    x = ut.ones(2, dtype=ut.float64, requires_grad=True)
    with pytest.raises(AssertionError, match="nothing to check"):
        ut.autograd.gradcheck(ut.exp, (x,), check_backward_ad=False)


def test_number_of_the_innermost_level() -> None:
    assert fw._current_level == -1
    with fw.dual_level() as number:
        assert fw._current_level == number == 0
    assert fw._current_level == -1


def test_duals_are_shown_with_tangents_and_read_without() -> None:
    with fw.dual_level():
        d = fw.make_dual(ut.ones(2), ut.ones(2)) * 2
        assert repr(d) == "tensor([2., 2.], tangent=tensor([2., 2.]))"
        np.testing.assert_array_equal(d.numpy(), [2, 2])
    assert repr(d) == "tensor([2., 2.])"
    np.testing.assert_array_equal(d.numpy(), [2, 2])
    np.testing.assert_array_equal(ut.from_dlpack(d).numpy(), [2, 2])
