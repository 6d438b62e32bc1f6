"""The backward pass: seeds, accumulation, errors, higher orders, devices, no silent wrongness.

The numbers in the section titles are those of the behaviours that the engine promises.
"""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.autograd import grad, gradcheck, gradgradcheck
from undertow.errors import (
    ArgumentError,
    FreedError,
    GradientError,
    InplaceError,
    ShapeError,
    VersionError,
)


def leaf(values: Any, **how: Any) -> ut.Tensor:
    return ut.tensor(values, requires_grad=True, **how)


def host(t: Any) -> Any:
    return t.detach().cpu().numpy()


def shares(a: ut.Tensor, b: ut.Tensor) -> bool:
    return bool(np.shares_memory(a.detach().numpy(), b.detach().numpy()))


# The origin's own tests ----------------------------------------------------------------------
def test_simple_add() -> None:
    a, b = leaf(2.0), leaf(3.0)
    (a + b).backward()
    assert a.grad.item() == 1
    assert b.grad.item() == 1


def test_mul() -> None:
    a, b = leaf(2.0), leaf(3.0)
    (a * b).backward()
    assert a.grad.item() == 3
    assert b.grad.item() == 2


def test_shared_input() -> None:
    a = leaf(5.0)
    (a + a).backward()
    assert a.grad.item() == 2


def test_chain_with_reuse() -> None:
    a, b = leaf(2.0), leaf(3.0)
    (a * b + b).backward()
    assert a.grad.item() == 3
    assert b.grad.item() == 3


def test_one_element_through_pow_and_add() -> None:
    x, y = leaf([3.0]), leaf([-4.0])
    loss = x**2 + y**2
    assert loss.shape == (1,)
    loss.backward()
    assert host(x.grad).tolist() == [6]
    assert host(y.grad).tolist() == [-8]


# 1. Seeds ------------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
@pytest.mark.parametrize("workers", [1, 2])
def test_implicit_seed_has_the_roots_shape(shape: tuple[int, ...], workers: int) -> None:
    x = ut.full(shape, 3.0, requires_grad=True)
    seeds = []
    y = x * x
    y.register_hook(lambda g: seeds.append(g))
    y.backward(workers=workers)
    assert seeds[0].shape == shape
    assert seeds[0].item() == 1
    assert x.grad.shape == shape
    assert x.grad.item() == 6


def test_non_scalar_root_needs_a_gradient() -> None:
    x = leaf([1.0, 2.0, 3.0])
    with pytest.raises(GradientError, match=r"shape \(3,\)"):
        (x * 2).backward()
    with pytest.raises(GradientError, match=r"shape \(0,\)"):
        ut.zeros(0, requires_grad=True).backward()
    assert x.grad is None


def test_explicit_gradient_must_fit() -> None:
    x = leaf([1.0, 2.0])
    y = x * 2
    with pytest.raises(ShapeError, match=r"\(3,\).*\(2,\)"):
        y.backward(ut.ones(3))
    with pytest.raises(ShapeError):  # broadcasting is not fitting
        y.backward(ut.ones(1))
    with pytest.raises(ShapeError):
        y.sum().backward(ut.ones(1))
    with pytest.raises(GradientError, match=r"complex64.*float32"):
        y.backward(ut.ones(2, dtype=ut.complex64))
    with pytest.raises(GradientError, match=r"reference.*cpu"):
        y.backward(ut.ones(2, device="reference"))
    with pytest.raises(GradientError, match="list"):
        ut.autograd.backward([y], [[1.0, 1.0]])  # type: ignore[list-item]
    with pytest.raises(ArgumentError, match="1 tensors but 2 gradients"):
        ut.autograd.backward([y], [ut.ones(2), ut.ones(2)])
    assert x.grad is None
    y.backward(ut.tensor([1.0, 10.0]))
    assert host(x.grad).tolist() == [2, 20]


def test_several_roots() -> None:
    x = leaf([1.0, 2.0])
    y = x * x
    ut.autograd.backward([y, y.sum(), x], [ut.ones(2), None, ut.tensor([5.0, 7.0])])
    assert host(x.grad).tolist() == [2 + 2 + 5, 4 + 4 + 7]
    with pytest.raises(ArgumentError):
        ut.autograd.backward([])


# 2. Gradients add up and never alias ---------------------------------------------------------
def test_diamond_and_repeated_calls() -> None:
    x = leaf([2.0])
    for times in (1, 2, 3):
        a = x * 3
        (a * a + a * x).sum().backward()  # 9x² + 3x²
        assert host(x.grad).tolist() == [24 * 2.0 * times]


def test_same_tensor_twice_in_one_op() -> None:
    x = leaf([3.0])
    (x * x).backward()
    (x / x).backward()
    (x - x).backward()
    assert host(x.grad).tolist() == [6]


def test_gradient_argument_is_not_aliased_or_changed() -> None:
    x = leaf([1.0, 2.0])
    g = ut.tensor([1.0, 1.0])
    x.backward(g)  # the identity: the seed itself arrives at the leaf
    assert not shares(x.grad, g)
    x.backward(g)
    assert host(x.grad).tolist() == [2, 2]
    assert host(g).tolist() == [1, 1]
    x.grad = None
    x.view(2, 1).backward(g.view(2, 1))
    assert not shares(x.grad, g)


def test_two_leaves_do_not_share_a_gradient() -> None:
    x, y = leaf([1.0, 2.0]), leaf([1.0, 2.0])
    (x + y).backward(ut.ones(2))
    assert not shares(x.grad, y.grad)
    x.grad.mul_(10)
    assert host(y.grad).tolist() == [1, 1]


def test_results_of_grad_do_not_alias() -> None:
    x, y = leaf([1.0, 2.0]), leaf([1.0, 2.0])
    g = ut.ones(2)
    for create_graph in (False, True):
        a, b = grad(x + y, (x, y), g, create_graph=create_graph)
        assert not shares(a, b)
        assert not shares(a, g)
        assert not shares(b, g)
        (c,) = grad(x.view(2, 1), x, g.view(2, 1), create_graph=create_graph)
        assert not shares(c, g)
        d, e = grad(x + y.view(2), (x, y), g, create_graph=create_graph)
        assert not shares(d, e)
        f, h = grad(x * 1, (x, x), g, create_graph=create_graph)
        assert not shares(f, h)


def test_gradient_is_not_the_saved_value() -> None:
    """d(x·y)/dx is y: its gradient must not be y's memory."""

    class Times(ut.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(y)
            return (x * y).sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (y,) = ctx.saved_tensors
            return y, None

    x, y = leaf([1.0, 2.0]), ut.tensor([3.0, 4.0])
    Times.apply(x, y).backward()
    x.grad.zero_()
    assert host(y).tolist() == [3, 4]


def test_broadcast_dimensions_are_summed() -> None:
    x, b, s = ut.ones(2, 3, requires_grad=True), ut.ones(3, requires_grad=True), leaf(2.0)
    c = ut.ones(2, 1, requires_grad=True)
    ((x + b) * s * c).sum().backward()
    assert b.grad.shape == (3,)
    assert host(b.grad).tolist() == [4, 4, 4]
    assert s.grad.shape == ()
    assert s.grad.item() == 12
    assert c.grad.shape == (2, 1)
    assert host(c.grad).tolist() == [[12], [12]]


def test_non_contiguous_gradients() -> None:
    x = leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    g = ut.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    x.t().backward(g)
    assert host(x.grad).tolist() == [[1, 3, 5], [2, 4, 6]]
    x.grad = None
    (x * x).backward(g.t())
    assert host(x.grad).tolist() == [[2, 12, 30], [16, 40, 72]]
    x.grad = None
    x.sum().backward()  # an expanded gradient
    assert host(x.grad).tolist() == [[1, 1, 1], [1, 1, 1]]
    x.grad.add_(1)  # of its own memory, though
    x.sum().backward()
    assert host(x.grad).tolist() == [[3, 3, 3], [3, 3, 3]]


def test_a_grad_that_the_user_set() -> None:
    x = leaf([1.0, 2.0, 3.0])
    x.grad = ut.ones(1).expand(3)  # overlapping memory cannot be added to in place
    (x * 2).sum().backward()
    assert host(x.grad).tolist() == [3, 3, 3]
    read_only = np.ones(3, np.float32)
    mine = ut.from_numpy(read_only)
    x.grad = mine
    read_only.flags.writeable = False
    (x * 2).sum().backward()
    assert host(x.grad).tolist() == [3, 3, 3]
    for wrong in (ut.ones(2), ut.ones(3, dtype=ut.float64), ut.ones(3, device="reference")):
        with pytest.raises(GradientError):
            x.grad = wrong
    with pytest.raises(GradientError):
        x.grad = x
    with pytest.raises(TypeError):
        x.grad = 1.0  # type: ignore[assignment]


# 3. Roots ------------------------------------------------------------------------------------
@pytest.mark.parametrize("workers", [1, 2])
def test_leaf_as_root(workers: int) -> None:
    x = leaf(2.0)
    x.backward(workers=workers)
    assert x.grad.item() == 1
    x.backward(ut.tensor(5.0))
    assert x.grad.item() == 6
    assert grad(x, x)[0].item() == 1


def test_root_without_gradient_is_an_error() -> None:
    x = ut.ones(1)
    for run in (x.backward, lambda: ut.autograd.backward(x), lambda: grad(x, leaf(1.0))):
        with pytest.raises(GradientError, match="does not require gradients"):
            run()
    with ut.no_grad():
        y = leaf(1.0) * 2
    with pytest.raises(GradientError):
        y.backward()
    with pytest.raises(GradientError):
        leaf(1.0).detach().backward()
    with pytest.raises(GradientError, match="float"):
        ut.autograd.backward([1.0])  # type: ignore[list-item]


# 5. Wrong gradients from rules ---------------------------------------------------------------
def returning(result: Any) -> Any:
    class Wrong(ut.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return result

    return Wrong


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ((), "0 gradients for 1"),
        ((ut.ones(2), ut.ones(2)), "2 gradients for 1"),
        (ut.ones(3), r"shape \(3,\).*expected.*\(2,\)"),
        (ut.ones(1), r"shape \(1,\).*expected.*\(2,\)"),  # not even if it broadcasts
        (ut.ones(2, 1), r"shape \(2, 1\)"),
        (ut.ones(2, dtype=ut.complex64), "complex64.*float32"),  # its imaginary part would be lost
        (1.0, "type float"),
        (np.ones(2, np.float32), "type ndarray"),
        (ut.ones(2, device="reference"), "reference"),
    ],
)
@pytest.mark.parametrize("create_graph", [False, True])
def test_wrong_gradients_name_the_node(result: Any, message: str, create_graph: bool) -> None:
    x = leaf([1.0, 2.0])
    with pytest.raises(GradientError, match=rf"\[WrongBackward\].*{message}"):
        returning(result).apply(x * 1).sum().backward(create_graph=create_graph)
    assert x.grad is None


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_of_functions_are_summed_and_cast(create_graph: bool) -> None:
    """As in torch: a rule may return what broadcasting made of its argument, in any dtype."""
    wide = ut.arange(6.0).reshape(3, 2)
    for result, expected in [
        (wide, [6.0, 9.0]),
        (wide.double(), [6.0, 9.0]),
        (wide.long(), [6.0, 9.0]),
        (ut.ones(2, dtype=ut.float64), [1.0, 1.0]),
    ]:
        x = leaf([1.0, 2.0])
        returning(result).apply(x * 1).sum().backward(create_graph=create_graph)
        assert x.grad is not None
        assert x.grad.dtype is ut.float32
        assert x.grad.tolist() == expected
    x = leaf([[1.0], [2.0]])
    returning(ut.ones(4, 2, 3)).apply(x * 1).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[12.0], [12.0]]


def test_a_wrong_rule_of_an_op_is_an_error() -> None:
    from undertow.core.dispatch import apply
    from undertow.core.op import OPS, Op

    op = Op("test_wrong_rule", lambda k, x: k.copy(x), inputs="x", vjp={"x": lambda g: g.sum()})
    try:
        with pytest.raises(GradientError, match=r"TestWrongRuleBackward.*its rule"):
            apply(op, (leaf([1.0, 2.0]),)).backward(ut.ones(2))
    finally:
        del OPS["test_wrong_rule"]


# 6. Higher orders ----------------------------------------------------------------------------
def test_derivatives_of_any_order() -> None:
    x = leaf(2.0, dtype=ut.float64)
    y = x**6
    values = []
    for _ in range(6):
        (y,) = grad(y, x, create_graph=True)
        values.append(y.item())
    assert values == [192, 480, 960, 1440, 1440, 720]


def test_create_graph_accumulates_with_history() -> None:
    x = leaf(3.0)
    (x**3).backward(create_graph=True)
    assert x.grad.requires_grad
    first = x.grad
    x.grad = None
    first.backward()
    assert x.grad.item() == 18


def test_create_graph_adds_to_an_existing_gradient_out_of_place() -> None:
    x = leaf(3.0)
    (x**2).backward()
    old = x.grad
    (x**3).backward(create_graph=True)
    assert old.item() == 6
    assert x.grad is not old
    assert x.grad.item() == 6 + 27
    total, x.grad = x.grad, None
    total.backward()
    assert x.grad.item() == 18


def test_seed_takes_part_in_second_order() -> None:
    x, v = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    (g,) = grad(x**2, x, v, create_graph=True)
    gx, gv = grad(g.sum(), (x, v))
    assert host(gx).tolist() == [6, 8]
    assert host(gv).tolist() == [2, 4]


def test_without_create_graph_nothing_is_recorded() -> None:
    x = leaf(3.0)
    (g,) = grad(x**3, x)
    assert not g.requires_grad
    (x**3).backward()
    assert not x.grad.requires_grad


def test_gradient_penalty() -> None:
    random = np.random.default_rng(0)
    x, w, v = (leaf(random.standard_normal(s)) for s in ((4, 3), (3, 5), (5, 1)))

    def penalty(x: Any, w: Any, v: Any) -> Any:
        with ut.enable_grad():
            out = (x @ w).tanh() @ v
            (g,) = grad(out.sum(), x, create_graph=True)
        return ((g**2).sum(1).sqrt() - 1).pow(2).mean()

    assert gradcheck(penalty, (x, w, v))
    assert gradgradcheck(penalty, (x, w, v), fast_mode=True)


# 7. Only what is asked for -------------------------------------------------------------------
def counting(log: list[str], name: str) -> Any:
    class Counted(ut.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            log.append(name + "".join(str(int(n)) for n in ctx.needs_input_grad))
            return g, g

    return Counted.apply


def test_only_paths_to_the_requested_inputs_run() -> None:
    log: list[str] = []
    x, y, z = leaf(1.0), leaf(1.0), leaf(1.0)
    a = counting(log, "a")(x, y)
    b = counting(log, "b")(z, 1.0 * z)
    out = counting(log, "out")(a, b)
    grad(out, x, retain_graph=True)
    assert log == ["out10", "a10"]
    log.clear()
    out.backward(inputs=[z], retain_graph=True)
    assert log == ["out01", "b11"]
    assert x.grad is None
    assert y.grad is None
    assert z.grad.item() == 2
    log.clear()
    grad(out, a, retain_graph=True)  # the node that made `a` need not run
    assert log == ["out10"]
    log.clear()
    out.backward()
    assert sorted(log) == ["a11", "b11", "out11"]


def test_rules_run_only_for_inputs_that_need_them() -> None:
    from undertow.core.dispatch import apply
    from undertow.core.op import OPS, Op

    ran = []
    op = Op(
        "test_two_rules",
        lambda k, a, b: k.copy(a),
        inputs="a b",
        vjp={"a": lambda g: ran.append("a") or g, "b": lambda g: ran.append("b") or g},
    )
    try:
        x, y = leaf(1.0), leaf(1.0)
        apply(op, (x, ut.tensor(2.0))).backward()
        assert ran == ["a"]
        grad(apply(op, (x, y)), y)
        assert ran == ["a", "b"]
    finally:
        del OPS["test_two_rules"]


def test_unused_inputs() -> None:
    x, y = leaf([1.0, 2.0]), leaf([3.0])
    out = (x * 2).sum()
    with pytest.raises(GradientError, match=r"input 1 of shape \(1,\) was not used"):
        grad(out, (x, y), retain_graph=True)
    a, b = grad(out, (x, y), allow_unused=True, retain_graph=True)
    assert host(a).tolist() == [2, 2]
    assert b is None
    a, b = grad(out, (x, y), materialize_grads=True)
    assert host(b).tolist() == [0]
    with pytest.raises(ArgumentError):
        grad(out, (x, y), allow_unused=False, materialize_grads=True)


def test_inputs_of_grad_and_backward_are_checked() -> None:
    x = leaf([1.0, 2.0])
    out = (x * 2).sum()
    with pytest.raises(GradientError, match=r"input 0.*does not require"):
        grad(out, ut.ones(2))
    with pytest.raises(GradientError, match="float"):
        grad(out, [1.0])  # type: ignore[list-item]
    for run in (lambda: grad(out, []), lambda: out.backward(inputs=[])):
        with pytest.raises(ArgumentError, match="empty"):
            run()
    with pytest.raises(GradientError):
        out.backward(inputs=[ut.ones(2)])
    assert x.grad is None


def test_grad_by_non_leaves_touches_no_grad_attribute() -> None:
    x = leaf([1.0, 2.0])
    a = x * 3
    b = a * a
    ga, gx, gb = grad(b.sum(), (a, x, b))
    assert host(ga).tolist() == [6, 12]
    assert host(gx).tolist() == [18, 36]
    assert host(gb).tolist() == [1, 1]
    assert x.grad is None
    assert a.grad is None


def test_backward_with_non_leaf_inputs() -> None:
    x = leaf([1.0, 2.0])
    a = x * 3
    (a * a).sum().backward(inputs=a)
    assert host(a.grad).tolist() == [6, 12]
    assert x.grad is None
    (a * a).sum().backward(inputs=[a, x, x])
    assert host(a.grad).tolist() == [12, 24]
    assert host(x.grad).tolist() == [18, 36]


def test_a_path_that_leads_nowhere_is_not_followed() -> None:
    """An input that only depends on another requested input: both are captured."""
    x = leaf(2.0)
    a = x * x
    y = a * a
    ga, gx = grad(y, (a, x))
    assert ga.item() == 8
    assert gx.item() == 32


# 8. and 9. Freed and changed values ----------------------------------------------------------
def test_second_backward_says_what_to_do() -> None:
    x = leaf(2.0)
    y = x * x
    y.backward()
    with pytest.raises(FreedError, match="retain_graph=True"):
        y.backward()
    z = x * x
    z.backward(retain_graph=True)
    z.backward()
    assert x.grad.item() == 12
    with pytest.raises(FreedError):
        z.backward()


def test_nodes_that_saved_no_tensor_can_run_again() -> None:
    x = leaf([1.0, 2.0])
    y = (x + x).sum()
    y.backward()
    y.backward()
    assert host(x.grad).tolist() == [4, 4]


def test_retain_graph_false_with_create_graph_frees() -> None:
    x = leaf(2.0)
    y = x * x
    (g,) = grad(y, x, create_graph=True, retain_graph=False)
    with pytest.raises(FreedError):
        grad(y, x)
    assert grad(g, x)[0].item() == 2


CHANGES: dict[str, Any] = {
    "in place": lambda t: t.add_(1),
    "by index": lambda t: t.__setitem__(0, 9.0),
    "through a view": lambda t: t.view(-1)[:1].mul_(2),
    "through detach": lambda t: t.detach().mul_(2),
    "by a new data": lambda t: setattr(t, "data", ut.zeros(2)),
    "zeroed": lambda t: t.zero_(),
    "copied into": lambda t: t.copy_(ut.zeros(2)),
    "through the base": lambda t: (t if t._base is None else t._base).fill_(3),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("grad_mode", [False, True])
def test_change_of_a_saved_constant_is_detected(change: str, grad_mode: bool) -> None:
    x, w = leaf([1.0, 2.0]), ut.tensor([3.0, 4.0])
    y = (x * w).sum()
    with ut.set_grad_enabled(grad_mode):
        CHANGES[change](w)
    with pytest.raises(VersionError, match=r"\[mul\].*version"):
        y.backward()


@pytest.mark.parametrize("change", CHANGES)
def test_change_of_a_saved_leaf_is_detected(change: str) -> None:
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    with ut.no_grad():
        CHANGES[change](x)
    with pytest.raises(VersionError):
        y.backward()
    assert x.grad is None


@pytest.mark.parametrize("change", ["in place", "through a view", "zeroed"])
def test_change_of_a_saved_output_is_detected(change: str) -> None:
    x = leaf([1.0, 2.0])
    y = x.exp()
    z = y.sum()
    CHANGES[change](y)
    with pytest.raises(VersionError, match=r"\[exp\] its output"):
        z.backward()


def test_a_change_that_nobody_saved_is_no_error() -> None:
    x, w = leaf([1.0, 2.0]), ut.tensor([3.0, 4.0])
    y = (x + w).sum()
    w.add_(1)
    y.backward()
    assert host(x.grad).tolist() == [1, 1]


def test_accumulating_changes_the_version_of_a_saved_gradient() -> None:
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    (x * x).sum().backward()
    loss = (w * x.grad).sum()
    (x * x).sum().backward()  # adds to x.grad in place
    with pytest.raises(VersionError, match="changed in place"):
        loss.backward()
    assert w.grad is None


def test_version_errors_are_raised_before_anything_accumulates() -> None:
    x, w = leaf([1.0, 2.0]), ut.tensor([3.0, 4.0])
    y = (x * w * w).sum()
    w.add_(1)
    with pytest.raises(VersionError):
        y.backward()
    assert x.grad is None


# Nothing silently wrong ----------------------------------------------------------------------
def test_detach_in_place_does_not_cut_what_was_recorded() -> None:
    x, w = leaf([1.0, 2.0], dtype=ut.float64), leaf([3.0, 4.0], dtype=ut.float64)
    a = x * x
    z = (a * w).sum()
    a.detach_()
    gx, gw = grad(z, (x, w), create_graph=True)
    assert host(gx).tolist() == [6, 16]
    (second,) = grad(gw.sum(), x)  # d(x²)/dx through the saved `a`
    assert host(second).tolist() == [2, 4]


def test_leaf_switched_off_and_on_is_the_same_leaf() -> None:
    x = leaf([1.0, 2.0])
    seen: list[Any] = []
    x.register_hook(lambda g: seen.append(g))
    y = (x * x).sum()
    x.requires_grad_(False)
    x.requires_grad_(True)
    assert host(grad(y, x, retain_graph=True)[0]).tolist() == [2, 4]
    y.backward()
    assert host(x.grad).tolist() == [2, 4]
    assert len(seen) == 2


def test_leaf_switched_off_receives_nothing() -> None:
    x = leaf(2.0)
    y = x * x
    x.requires_grad_(False)
    y.backward()
    assert x.grad is None


def test_requires_grad_after_use() -> None:
    """What was recorded without a gradient stays so; asking for it is an error."""
    x, w = ut.tensor([1.0, 2.0]), leaf([3.0, 4.0])
    z = (x * w).sum()
    x.requires_grad_()
    with pytest.raises(GradientError, match="not used"):
        grad(z, x, retain_graph=True)
    z.backward()
    assert x.grad is None
    assert host(w.grad).tolist() == [1, 2]


def test_requires_grad_rules() -> None:
    x = leaf([1.0])
    y = x * 2
    with pytest.raises(GradientError, match="only a leaf"):
        y.requires_grad_(False)
    assert y.requires_grad_() is y
    with pytest.raises(GradientError, match="int64"):
        ut.tensor([1]).requires_grad_()
    x.requires_grad = False
    assert not x.requires_grad
    assert x.is_leaf
    assert y.requires_grad


@pytest.mark.parametrize("create_graph", [False, True])
def test_leaf_whose_data_no_longer_fits(create_graph: bool) -> None:
    for data in (ut.zeros(3), ut.zeros(2, dtype=ut.float64), ut.zeros(2, device="reference")):
        x = leaf([1.0, 2.0])
        y = x * 2
        x.data = data
        with pytest.raises(GradientError):
            y.backward(ut.ones(2), create_graph=create_graph)
        assert x.grad is None


def test_leaf_changed_in_place() -> None:
    x = leaf([1.0, 2.0])
    for change in ("in place", "through a view", "zeroed", "by index"):
        with pytest.raises(InplaceError):
            CHANGES[change](x)
    assert host(x).tolist() == [1, 2]
    assert x.is_leaf
    with ut.no_grad():
        x.add_(1)
    (x * x).sum().backward()
    assert host(x.grad).tolist() == [4, 6]


def test_view_of_a_changed_base() -> None:
    x = leaf([1.0, 2.0, 3.0])
    base = x * 1
    view = base[:2]
    base.mul_(3)
    (view * view).sum().backward()  # 9x₀² + 9x₁²
    assert host(x.grad).tolist() == [18, 36, 0]


def test_backward_inside_no_grad_and_inference_mode() -> None:
    x = leaf(3.0)
    with ut.no_grad():
        grads = []
        y = None
        with ut.enable_grad():
            y = x**3
        y.backward(retain_graph=True)
        (g,) = grad(y, x, create_graph=True)
        grads.append(g)
        assert g.requires_grad
        assert not ut.is_grad_enabled()
    with ut.inference_mode():
        (h,) = grad(y, x, create_graph=True)
        y.backward()
    assert grad(grads[0], x)[0].item() == 18
    assert grad(h, x)[0].item() == 18
    assert x.grad.item() == 54
    assert not x.grad.is_inference()


def test_gradient_of_what_has_no_rule_is_an_error() -> None:
    from undertow.core.dispatch import apply
    from undertow.core.op import OPS, Op

    op = Op("test_no_rule", lambda k, x: k.copy(x), inputs="x")
    try:
        y = apply(op, (leaf([1.0]),))
        assert y.requires_grad
        with pytest.raises(GradientError, match="no derivative"):
            y.backward()
    finally:
        del OPS["test_no_rule"]


def test_integer_results_have_no_gradient() -> None:
    x = leaf([1.5, 2.5])
    assert not (x > 2).requires_grad
    assert not x.argmax().requires_grad
    assert not x.to(ut.int64).requires_grad


def test_errors_leave_the_engine_usable() -> None:
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError) as caught:
        y.backward()
    assert any("MulBackward0" in note for note in caught.value.__notes__)
    assert ut.is_grad_enabled()
    (x * 2).backward()
    assert x.grad.item() == 2


def test_nested_backward_inside_a_hook() -> None:
    x, w = leaf(2.0), leaf(5.0)

    def inner(g: Any) -> Any:
        with ut.enable_grad():
            (w * w).backward()
        return g * w.grad

    y = x * 3
    y.register_hook(inner)
    y.backward()
    assert w.grad.item() == 10
    assert x.grad.item() == 30


# The graph -----------------------------------------------------------------------------------
def test_grad_fn_and_next_functions() -> None:
    x, y = leaf([1.0]), ut.ones(1)
    z = (x * y).exp()
    assert z.grad_fn.name() == "ExpBackward0"
    ((mul, index),) = z.grad_fn.next_functions
    assert mul.name() == "MulBackward0"
    assert index == 0
    (acc, _), (none, _) = mul.next_functions
    assert acc.name() == "AccumulateGrad"
    assert acc.variable is x
    assert none is None
    assert x.grad_fn is None
    assert isinstance(z.grad_fn, ut.autograd.graph.Node)
    assert "ExpBackward0" in repr(z.grad_fn)


def test_is_leaf() -> None:
    x = leaf([1.0])
    assert x.is_leaf
    assert (ut.ones(1) * 2).is_leaf
    assert x.detach().is_leaf
    assert not (x * 2).is_leaf
    with ut.no_grad():
        assert (x * 2).is_leaf
    assert x.clone().is_leaf is False


def test_gradient_edges() -> None:
    from undertow.autograd.graph import get_gradient_edge

    x = leaf([1.0, 2.0])
    a = x * x
    edge = get_gradient_edge(a)
    y = (a * 3).sum()
    del a
    (g,) = grad(y, edge, retain_graph=True)
    assert host(g).tolist() == [3, 3]
    (g,) = grad(edge, x, ut.tensor([1.0, 10.0]))
    assert host(g).tolist() == [2, 40]
    with pytest.raises(GradientError):
        get_gradient_edge(ut.ones(1))


# Devices -------------------------------------------------------------------------------------
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_arrive_on_their_own_devices(workers: int, create_graph: bool) -> None:
    x = leaf([1.0, 2.0])
    w = leaf([3.0, 4.0], device="reference")
    moved = x.to("reference")
    y = moved * w + moved * 2
    back = (y * y).cpu() * x
    for _ in range(2):
        back.sum().backward(retain_graph=True, create_graph=create_graph, workers=workers)
    assert str(x.grad.device) == "cpu"
    assert str(w.grad.device) == "reference"
    # f = x (xw + 2x)² = x³ (w + 2)²
    xs, ws = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    np.testing.assert_allclose(host(x.grad), 2 * 3 * xs**2 * (ws + 2) ** 2)
    np.testing.assert_allclose(host(w.grad), 2 * 2 * xs**3 * (ws + 2))


def test_second_order_across_devices() -> None:
    x = leaf([1.0, 2.0], dtype=ut.float64)
    w = leaf([3.0, 4.0], dtype=ut.float64, device="reference")

    def f(x: Any, w: Any) -> Any:
        return ((x.to("reference") * w).cpu() * x).sum()

    assert gradcheck(f, (x, w))
    assert gradgradcheck(f, (x, w))


def test_retained_and_hooked_gradients_on_another_device() -> None:
    x = leaf([1.0, 2.0])
    m = x.to("reference")
    m.retain_grad()
    m.register_hook(lambda g: g * 2)
    (m * m).sum().backward()
    assert str(m.grad.device) == "reference"
    assert host(m.grad).tolist() == [4, 8]
    assert host(x.grad).tolist() == [4, 8]


# Threads -------------------------------------------------------------------------------------
def test_threads_accumulate_into_one_leaf() -> None:
    x = leaf(np.ones(100), dtype=ut.float64)

    def work() -> None:
        for _ in range(50):
            (x * 2).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert (host(x.grad) == 400).all()


@pytest.mark.parametrize("outputs, inputs", [(None, "x"), ("x", None), (3, "x"), ("x", 3)])
def test_grad_of_what_is_no_tensor(outputs, inputs) -> None:
    """The error says what was expected and what came."""
    x = ut.tensor([1.0], requires_grad=True)
    pick = {"x": x}
    with pytest.raises(TypeError, match=r"\[grad\].*(NoneType|int)"):
        ut.autograd.grad(pick.get(outputs, outputs), pick.get(inputs, inputs))


def test_grad_takes_the_arguments_of_torch() -> None:
    """only_inputs is torch's default; what we do not do is refused."""
    x = ut.tensor([2.0], requires_grad=True)
    assert ut.autograd.grad(x * x, x, only_inputs=True)[0].tolist() == [4.0]
    with pytest.raises(NotImplementedError, match="only_inputs"):
        ut.autograd.grad(x * x, x, only_inputs=False)
    with pytest.raises(TypeError, match="decorates functions, got int"):
        ut.no_grad(3)


@pytest.mark.parametrize("dtype", [ut.float64, ut.float16, ut.bfloat16, ut.int64, ut.bool])
def test_an_explicit_gradient_is_cast(dtype: Any) -> None:
    x = leaf([1.0, 2.0])
    seed = ut.ones(2, dtype=dtype)
    (x * 2).backward(seed)
    assert x.grad.dtype is ut.float32
    assert x.grad.tolist() == [2, 2]
    (found,) = grad(x, x, seed)
    assert (found.dtype, found.tolist()) == (ut.float32, [1, 1])
    ut.autograd.backward([ut.autograd.graph.get_gradient_edge(x * 2)], [seed])
    assert x.grad.tolist() == [4, 4]
    if dtype.is_floating_point:  # and differentiated
        seed.requires_grad_()
        (found,) = grad(x * x, x, seed, create_graph=True)
        (back,) = grad(found.sum(), seed)
        assert (back.dtype, back.tolist()) == (dtype, [2, 4])


# Derivatives that are identically zero -------------------------------------------------------
@pytest.mark.parametrize(
    "f, orders",
    [
        (lambda x: x, 1),
        (lambda x: x * 3 + 1, 1),
        (lambda x: x * x, 2),
        (lambda x: x**1, 1),
        (lambda x: x**2, 2),
        (lambda x: x**3, 3),
        (lambda x: x * x * x, 3),
        (lambda x: x.relu(), 1),
        (lambda x: x.abs(), 1),
        (lambda x: x.clamp(-1, 1.5), 1),
        (lambda x: ut.nn.functional.leaky_relu(x), 1),
        (lambda x: ut.nn.functional.hardtanh(x), 1),
        (lambda x: ut.maximum(x, x.detach() * 0), 1),
        (lambda x: x.max(), 1),
        (lambda x: x.sort().values, 1),
        (lambda x: x.sign(), 0),
        (lambda x: x.floor(), 0),
        (lambda x: x[1:], 1),
        (lambda x: x.sum().expand(3) @ ut.ones(3), 1),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_derivatives_end_in_zeros(f: Any, orders: int, workers: int) -> None:
    """The derivative after the last that varies is zero, and so is every one after that."""
    x = leaf([0.5, 2.0])
    y = f(x)
    for order in range(orders + 3):
        (y,) = grad(y.sum(), x, create_graph=True, workers=workers)
        assert y.shape == x.shape
        if order >= orders:
            assert y.tolist() == [0, 0]
    assert x.grad is None
    y.sum().backward()
    assert x.grad.tolist() == [0, 0]


def test_zeros_for_other_inputs_and_in_their_own_dtype() -> None:
    x = leaf([1.0, 2.0])
    w = leaf([[3.0]], dtype=ut.float64)
    g, h = grad((x * 2).sum() + w.sum(), (x, w), create_graph=True)
    a, b = grad(g.sum() * h.float().sum(), (x, w))
    assert (a.dtype, a.tolist()) == (ut.float32, [0, 0])
    assert (b.dtype, b.tolist()) == (ut.float64, [[0]])


def test_materialized_zeros_can_be_differentiated() -> None:
    x, a, unused = leaf(0.5), leaf(1.0), leaf(2.0)
    (first,) = grad(x * a, x, create_graph=True)
    assert grad(first, x, create_graph=True, allow_unused=True) == (None,)
    second, none = grad(first, (x, unused), create_graph=True, materialize_grads=True)
    assert (second.item(), none.item()) == (0, 0)
    (third,) = grad(second, x, materialize_grads=True)
    assert third.item() == 0
    assert grad(second, x)[0].item() == 0
    assert grad(none, unused)[0].item() == 0


def test_a_network_of_relus_has_zero_second_derivatives_by_its_biases() -> None:
    """Its gradient does not depend on them, but it is a gradient of something that does."""
    rng = np.random.default_rng(0)
    w, v = (ut.tensor(rng.standard_normal((4, 4)), requires_grad=True) for _ in range(2))
    b = ut.tensor(rng.standard_normal(4), requires_grad=True)
    x = ut.tensor(rng.standard_normal((3, 4)), requires_grad=True)
    unrelated = leaf(1.0)
    y = ((x @ w + b).relu() @ v).sum()
    (g,) = grad(y, x, create_graph=True)
    penalty = (g * g).sum()
    by_w, by_b, by_x = grad(penalty, (w, b, x), retain_graph=True)
    assert by_w.abs().sum().item() > 0
    assert by_b.tolist() == [0] * 4
    assert not by_x.any()
    assert grad(penalty, (w, b), retain_graph=True, allow_unused=True)[1] is None
    with pytest.raises(GradientError, match="not used"):
        grad(penalty, unrelated, retain_graph=True)
    # And a derivative of that, once more removed.
    (again,) = grad(penalty, v, create_graph=True)
    assert grad(again.sum(), b)[0].tolist() == [0] * 4


def test_what_a_rule_or_a_hook_loses_is_no_zero() -> None:
    x = leaf([1.0, 2.0])
    handle = x.register_hook(lambda g: (x * x).detach())
    (g,) = grad((x * 2).sum(), x, create_graph=True)
    with pytest.raises(GradientError, match="does not require gradients"):
        grad(g.sum(), x)
    handle.remove()
    y = x * 2
    for register in (y.grad_fn.register_prehook, y.grad_fn.register_hook):
        with register(lambda *gs: tuple(None if g is None else g.detach() * 2 for g in gs[0])):
            (g,) = grad(y.sum(), x, retain_graph=True, create_graph=True)
        assert not g.requires_grad
    x.register_hook(lambda g: g * 3)  # nothing lost here, but nothing known either
    (g,) = grad(y.sum(), x, retain_graph=True, create_graph=True)
    assert not g.requires_grad

    class Square(ut.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return ut.tensor(ctx.saved_tensors[0].numpy(force=True) * 2)

    z = leaf([1.0])
    (g,) = grad(Square.apply(z), z, create_graph=True)
    with pytest.raises(GradientError, match="differentiated twice"):
        grad(g, z)


def test_zeros_keep_no_more_than_they_need() -> None:
    """A result does not hold the input, and the root's history goes with the result."""
    x = leaf([1.0, 2.0])
    y = (x * 2).sum()
    node = weakref.ref(y.grad_fn)
    (g,) = grad(y, x, create_graph=True)
    del y
    gc.collect()
    assert node() is not None
    del g
    gc.collect()
    assert node() is None


# Nodes by themselves -------------------------------------------------------------------------
def test_a_node_can_be_called() -> None:
    """Its rule alone: no hooks, nothing freed, recorded if recording is on."""
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    y = x * w
    y.grad_fn.register_hook(lambda *_: pytest.fail("called"))
    y.grad_fn.register_prehook(lambda *_: pytest.fail("called"))
    y.register_hook(lambda *_: pytest.fail("called"))
    for _ in range(2):
        a, b = y.grad_fn(ut.tensor([1.0, 10.0]))
        assert (a.tolist(), b.tolist()) == ([3, 40], [1, 20])
        assert a.requires_grad
    with ut.no_grad():
        a, b = y.grad_fn(ut.ones(2))
        assert not a.requires_grad
    assert (x * 3).grad_fn(ut.ones(2))[1] is None
    assert x.sum().grad_fn(ut.tensor(2.0)).tolist() == [2, 2]
    assert y.grad_fn(None) == (None, None)
    first, _ = ut.var_mean(x)
    assert first.grad_fn(None, ut.tensor(2.0)).tolist() == [1, 1]
    accumulate = y.grad_fn.next_functions[0][0]
    with ut.no_grad():
        assert accumulate(ut.ones(2)) == accumulate(ut.ones(2)) == ()
    assert x.grad.tolist() == [2, 2]
    with pytest.raises(ut.errors.ShapeError, match=r"shape \(3,\), the output \(2,\)"):
        y.grad_fn(ut.ones(3))
    with pytest.raises(TypeError, match="1 outputs, got 2 gradients"):
        y.grad_fn(ut.ones(2), ut.ones(2))
    z = x * x
    z.sum().backward()
    with pytest.raises(ut.errors.FreedError):
        z.grad_fn(ut.ones(2))


def test_a_node_keeps_what_the_user_notes() -> None:
    x = leaf([1.0])
    y = (x * x).exp()
    y.grad_fn.metadata["who"] = "me"
    assert y.grad_fn.metadata == {"who": "me"}
    node = y.grad_fn.next_functions[0][0]
    assert node.metadata == {}
    assert node.next_functions[0][0].metadata == {}
    y.backward()
    assert y.grad_fn.metadata == {"who": "me"}


def test_inputs_by_name_give_gradients_by_name() -> None:
    x, y = (ut.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    z = (x**2 + x * y).sum()
    found = ut.autograd.grad(z, {"x": x, "y": y}, retain_graph=True)
    assert {name: g.tolist() for name, g in found.items()} == {"x": [3.0, 6.0], "y": [1.0, 2.0]}
    z.backward(inputs={"y": y})
    assert x.grad is None
    assert y.grad is not None
    assert y.grad.tolist() == [1.0, 2.0]
    with pytest.raises(RuntimeError, match="inputs is empty"):
        ut.autograd.grad(z, {})


def test_batched_gradients_are_a_pass_for_each_row() -> None:
    x = ut.tensor([1.0, 2.0, 3.0], requires_grad=True)
    unused = ut.ones(2, requires_grad=True)
    y = x**3
    jacobian, second, none = ut.autograd.grad(
        [y, (x * 2).sum()],
        [x, y, unused],
        [ut.eye(3), None],
        is_grads_batched=True,
        allow_unused=True,
        create_graph=True,
    )
    assert jacobian.tolist() == (ut.diag(3 * x**2) + 2).tolist()
    assert second.tolist() == ut.eye(3).tolist()
    assert none is None
    assert ut.autograd.grad(jacobian.sum(), x)[0].tolist() == [6.0, 12.0, 18.0]
    with pytest.raises(ValueError, match="equally many rows"):
        ut.autograd.grad([y, y], x, [ut.ones(2, 3), ut.ones(3, 3)], is_grads_batched=True)


@pytest.mark.parametrize(
    "select",
    [
        lambda x: x.max(1),
        lambda x: x.min(1),
        lambda x: x.sort(1),
        lambda x: x.topk(2, 1),
        lambda x: x.cummax(1),
        lambda x: x.kthvalue(2, 1),
        lambda x: x.median(1),
        lambda x: x.mode(1),
    ],
)
def test_indices_that_were_given_away_are_followed(select: Any) -> None:
    """The gradient goes where they say, so changing them in place must not be silent."""
    x = ut.tensor([[1.0, 5.0, 3.0], [4.0, 2.0, 6.0]], requires_grad=True)
    values, indices = select(x)
    values.sum().backward(retain_graph=True)
    indices.zero_()
    with pytest.raises(VersionError, match="changed in place"):
        values.sum().backward()


def test_cotangents_of_gradgradcheck_that_are_constants() -> None:
    """Only those that require gradients are moved: others may have few digits."""
    x = ut.tensor([0.5, 2.0], dtype=ut.float64, requires_grad=True)
    g = ut.tensor([1.0, 0.3])
    assert gradgradcheck(lambda x: x * x, (x,), [g.double()])
    assert gradgradcheck(lambda x: x * x, (x,), [g.double().requires_grad_()])
    assert not g.requires_grad
