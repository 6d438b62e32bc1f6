"""Hooks on tensors, nodes and leaves: what they see, how often, in which order."""

from __future__ import annotations

from typing import Any

import pytest

import undertow as ut
from undertow.autograd import grad
from undertow.autograd.graph import register_multi_grad_hook
from undertow.errors import ArgumentError, GradientError


def leaf(values: Any, **how: Any) -> ut.Tensor:
    return ut.tensor(values, requires_grad=True, **how)


both = pytest.mark.parametrize("create_graph", [False, True])
workers = pytest.mark.parametrize("workers", [1, 2])


# 4. Tensor hooks -----------------------------------------------------------------------------
@workers
@both
def test_hook_sees_the_summed_gradient_once(create_graph: bool, workers: int) -> None:
    x = leaf(2.0)
    a = x * 3
    seen: dict[str, list[float]] = {"a": [], "x": []}
    a.register_hook(lambda g: seen["a"].append(g.item()))
    x.register_hook(lambda g: seen["x"].append(g.item()))
    (a * a + a * 5 + x).backward(create_graph=create_graph, workers=workers)
    assert seen == {"a": [2 * 6 + 5], "x": [3 * 17 + 1]}


@both
def test_hook_replaces_the_gradient_for_everybody_behind(create_graph: bool) -> None:
    x = leaf([1.0, 2.0])
    a = x * 3
    a.retain_grad()
    a.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: g + 1)
    a.sum().backward(create_graph=create_graph)
    assert a.grad.tolist() == [10, 10]
    assert x.grad.tolist() == [31, 31]


def test_hooks_run_in_order_and_see_each_others_results() -> None:
    x = leaf(1.0)
    seen = []
    for factor in (2, 3, 5):
        x.register_hook(lambda g, f=factor: seen.append(g.item()) or g * f)  # type: ignore[misc]
    (x * 1).backward()
    assert seen == [1, 2, 6]
    assert x.grad.item() == 30


def test_hook_on_the_root() -> None:
    x = leaf(2.0)
    y = x * x
    y.register_hook(lambda g: g * 7)
    y.backward()
    assert x.grad.item() == 28
    x.grad = None
    x.register_hook(lambda g: g * 3)
    x.backward()  # a leaf that is the root
    assert x.grad.item() == 3


def test_hooks_run_once_per_backward() -> None:
    x = leaf(2.0)
    count = []
    x.register_hook(lambda g: count.append(1))
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert len(count) == 2


def test_hooks_under_grad() -> None:
    x = leaf(2.0)
    a = x * 3
    y = a * a
    log = []
    for name, t in (("y", y), ("a", a), ("x", x)):
        t.register_hook(lambda g, n=name: log.append(n) or g * 2)  # type: ignore[misc]
    # The requested gradient has been through its own hook.
    assert grad(y, x, retain_graph=True)[0].item() == 2 * 2 * 2 * 36
    assert log == ["y", "a", "x"]
    log.clear()
    assert grad(y, a)[0].item() == 2 * 2 * 12
    assert log == ["y", "a"]
    assert x.grad is None


def test_a_hook_is_told_that_there_is_no_gradient() -> None:
    """As in torch: None for one that a rule left out; nothing for one that no path leads to."""

    class Silent(ut.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return None

    x, other = leaf(1.0), leaf(1.0)
    log = []
    for t in (x, other):
        t.register_hook(lambda g: log.append(g))
    Silent.apply(x).backward()
    assert log == [None]
    assert x.grad is None


@workers
@both
def test_hooks_on_unused_outputs(create_graph: bool, workers: int) -> None:
    x = leaf([1.0, 2.0, 3.0])
    log: list[Any] = []

    def values(grads: Any) -> Any:
        return [None if g is None else g.tolist() for g in grads]

    parts = x.unbind()
    for i, part in enumerate(parts):
        part.register_hook(lambda g, i=i: log.append((i, values([g])[0])))
    parts[1].retain_grad()
    node = parts[0].grad_fn
    node.register_prehook(lambda outs: log.append(("before", values(outs))))
    node.register_hook(lambda ins, outs: log.append(("after", values(ins), values(outs))))
    (parts[0] * 2).backward(create_graph=create_graph, workers=workers)
    assert log == [
        (0, 2),
        (1, None),
        (2, None),
        ("before", [2, None, None]),
        ("after", [[2, 0, 0]], [2, None, None]),
    ]
    assert parts[1].grad is None
    assert x.grad.tolist() == [2, 0, 0]


def test_a_hook_may_put_a_gradient_where_none_was() -> None:
    x = leaf([1.0, 2.0])
    a, b = x.unbind()
    b.register_hook(lambda g: ut.tensor(5.0) if g is None else g)
    a.backward()
    assert x.grad.tolist() == [1, 5]


@both
def test_hooks_of_the_node_of_an_input(create_graph: bool) -> None:
    """`backward(inputs=[b])` ends at the node of b, whose hooks see what arrives; `grad` does not.

    They cannot change the gradient of b, which comes before them, nor that of others.
    """
    x = leaf([1.0, 2.0])
    b = x * 2
    log: list[Any] = []
    b.grad_fn.register_prehook(lambda outs: log.append(outs[0].tolist()) or (outs[0] * 100,))
    b.grad_fn.register_hook(lambda ins, outs: log.append((ins, outs[0].tolist())))
    y = (b * 3).sum()
    y.backward(inputs=[b], retain_graph=True, create_graph=create_graph)
    assert log == [[3, 3], ((None, None), [300, 300])]
    assert b.grad.tolist() == [3, 3]
    assert x.grad is None
    log.clear()
    assert grad(y, b, retain_graph=True)[0].tolist() == [3, 3]
    assert log == []
    y.backward(inputs=[b, x])
    assert b.grad.tolist() == [9, 9]  # it is retained since the first pass
    assert x.grad.tolist() == [600, 600]


def test_a_post_accumulate_hook_must_not_return_anything() -> None:
    x = leaf([1.0, 2.0])
    x.register_post_accumulate_grad_hook(lambda t: t.grad)
    with pytest.raises(GradientError, match=r"post-accumulate hook .* returned a value"):
        x.sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_a_hook_set_before_a_view_is_changed_sees_the_gradient_of_the_old_value() -> None:
    """As every hook set before a change does."""
    x = leaf([1.0, 2.0, 3.0])
    y = x * 1
    view = y[:2]
    seen: list[Any] = []
    view.register_hook(lambda g: seen.append(g.tolist()))
    view.mul_(5)
    view.register_hook(lambda g: seen.append(g.tolist()))
    (view * ut.tensor([1.0, 10.0])).sum().backward()
    assert seen == [[1, 10], [5, 50]]
    assert x.grad.tolist() == [5, 50, 0]


def test_add_and_remove_while_hooks_run() -> None:
    x = leaf(1.0)
    log: list[str] = []
    handles: dict[str, Any] = {}

    def first(g: Any) -> None:
        log.append("first")
        handles["first"].remove()
        handles["last"].remove()
        x.register_hook(lambda g: log.append("new"))

    handles["first"] = x.register_hook(first)
    x.register_hook(lambda g: log.append("middle"))
    handles["last"] = x.register_hook(lambda g: log.append("last"))
    y = x * 1
    y.backward(retain_graph=True)
    assert log == ["first", "middle", "last"]  # those that were there when it began, as in torch
    log.clear()
    y.backward()
    assert log == ["middle", "new"]


def test_handles() -> None:
    x = leaf(1.0)
    log: list[int] = []
    handle = x.register_hook(lambda g: log.append(1))
    handle.remove()
    handle.remove()
    with x.register_hook(lambda g: log.append(2)):
        (x * 1).backward()
    (x * 1).backward()
    assert log == [2]


def test_wrong_hooks() -> None:
    x = leaf([1.0, 2.0])
    with pytest.raises(TypeError):
        x.register_hook(3)  # type: ignore[arg-type]
    with pytest.raises(GradientError):
        ut.ones(1).register_hook(lambda g: g)
    with pytest.raises(GradientError):
        (x * 2).register_post_accumulate_grad_hook(lambda t: None)
    with pytest.raises(GradientError):
        ut.ones(1).retain_grad()
    for wrong in (ut.ones(3), ut.ones(2, dtype=ut.float64), 1.0):
        a = x * 2
        a.register_hook(lambda g, w=wrong: w)  # type: ignore[misc]
        with pytest.raises(GradientError, match=r"MulBackward0.*a tensor hook"):
            a.sum().backward()
    assert x.grad is None


@both
def test_a_hook_may_change_its_gradient_in_place(create_graph: bool) -> None:
    """Both inputs of an addition get the same gradient, but a hook changes only its own."""
    x, y = leaf([1.0, 2.0]), leaf([1.0, 2.0])
    a, b = x * 1, y * 1

    def change(g: Any) -> None:
        with ut.no_grad():
            g.mul_(10)

    a.register_hook(change)
    seed = ut.ones(2)
    (a + b).backward(seed, create_graph=create_graph)
    assert x.grad.tolist() == [10, 10]
    assert y.grad.tolist() == [1, 1]
    assert seed.tolist() == [1, 1]


@both
def test_a_hook_may_keep_what_it_sees(create_graph: bool) -> None:
    x = leaf([1.0, 2.0])
    kept: list[Any] = []
    x.register_hook(lambda g: kept.append(g))
    buffer = ut.tensor([5.0, 5.0])
    y = leaf([1.0, 2.0])
    y.register_hook(lambda g: buffer)
    z = leaf([1.0, 2.0, 3.0, 4.0])
    z.register_hook(lambda g: g.view(2, 2).t().reshape(4) if g.ndim else None)
    (x * 2 + y).sum().backward(create_graph=create_graph)
    (z * 1).sum().backward(create_graph=create_graph)
    with ut.no_grad():
        x.grad.mul_(0)
        y.grad.mul_(0)
    assert kept[0].tolist() == [2, 2]
    assert buffer.tolist() == [5, 5]
    with ut.no_grad():
        kept[0].mul_(0)
    (x * 2 + y).sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert buffer.tolist() == [5, 5]


def test_hooks_belong_to_the_value_before_an_in_place_change() -> None:
    x = leaf([1.0, 2.0])
    a = x * 1
    before, after = [], []
    a.register_hook(lambda g: before.append(g.tolist()))
    a.mul_(3)
    a.register_hook(lambda g: after.append(g.tolist()))
    a.sum().backward()
    assert after == [[1, 1]]
    assert before == [[3, 3]]


# retain_grad ---------------------------------------------------------------------------------
def test_retain_grad() -> None:
    x = leaf([1.0, 2.0])
    a = x * 3
    assert not a.retains_grad
    a.retain_grad()
    a.retain_grad()
    assert a.retains_grad
    assert not x.retains_grad
    x.retain_grad()
    y = (a * a).sum()
    y.backward(retain_graph=True)
    assert a.grad.tolist() == [6, 12]
    y.backward()
    assert a.grad.tolist() == [12, 24]  # it accumulates, as in torch


def test_retain_grad_follows_an_in_place_change() -> None:
    x = leaf([1.0, 2.0])
    a = x * 2
    a.retain_grad()
    a.mul_(3)
    (a * 5).sum().backward()
    assert a.grad.tolist() == [5, 5]
    assert x.grad.tolist() == [30, 30]


def test_retained_gradients_do_not_alias() -> None:
    x = leaf([1.0, 2.0])
    a = x.view(2)
    a.retain_grad()
    seed = ut.ones(2)
    a.backward(seed)
    a.grad.mul_(5)
    assert x.grad.tolist() == [1, 1]
    assert seed.tolist() == [1, 1]


def test_a_tensor_that_is_gone_retains_nothing() -> None:
    x = leaf([1.0, 2.0])
    a = x * 2
    a.retain_grad()
    y = a * 3
    del a
    y.sum().backward()
    assert x.grad.tolist() == [6, 6]


# Post-accumulate hooks -----------------------------------------------------------------------
@workers
def test_post_accumulate_hooks_run_once_after_the_sum(workers: int) -> None:
    x = leaf(2.0)
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append((t is x, t.grad.item())))
    y = x * 3 + x * x
    y.backward(retain_graph=True, workers=workers)
    assert seen == [(True, 7)]
    y.backward()
    assert seen == [(True, 7), (True, 14)]
    grad(x * 2, x)
    assert len(seen) == 2  # nothing was accumulated


def test_post_accumulate_hook_may_step_and_clear() -> None:
    """The optimiser inside the backward."""
    x = leaf([1.0, 2.0])

    def step(t: Any) -> None:
        with ut.no_grad():
            t.sub_(t.grad * 0.5)
        t.grad = None

    handle = x.register_post_accumulate_grad_hook(step)
    (x * 2).sum().backward()
    assert x.tolist() == [0, 1]
    assert x.grad is None
    handle.remove()
    (x * 2).sum().backward()
    assert x.tolist() == [0, 1]
    assert x.grad.tolist() == [2, 2]


def test_order_of_leaf_hooks() -> None:
    x = leaf(1.0)
    log: list[str] = []
    x.register_post_accumulate_grad_hook(lambda t: log.append("post"))
    x.register_hook(lambda g: log.append("tensor"))
    y = x * 2
    acc = y.grad_fn.next_functions[0][0]
    acc.register_prehook(lambda go: log.append("pre"))
    acc.register_hook(lambda gi, go: log.append(f"after {len(gi)} {go[0].item():g}"))
    y.backward()
    assert log == ["tensor", "pre", "post", "after 0 2"]


def test_post_accumulate_hooks_with_given_inputs() -> None:
    x, y = leaf(1.0), leaf(1.0)
    log: list[str] = []
    x.register_post_accumulate_grad_hook(lambda t: log.append("x"))
    y.register_post_accumulate_grad_hook(lambda t: log.append("y"))
    (x * y).backward(inputs=[y])
    assert log == ["y"]


# Hooks on nodes ------------------------------------------------------------------------------
@both
def test_node_hooks(create_graph: bool) -> None:
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    z = x * y
    log: list[Any] = []
    z.grad_fn.register_prehook(lambda go: log.append(("pre", len(go))))
    z.grad_fn.register_prehook(lambda go: (go[0] * 2,))
    z.grad_fn.register_hook(lambda gi, go: log.append(("post", gi[0].tolist(), go[0].tolist())))
    z.grad_fn.register_hook(lambda gi, go: (gi[0] * 10, gi[1]))
    z.sum().backward(create_graph=create_graph)
    assert log == [("pre", 1), ("post", [6, 8], [2, 2])]
    assert x.grad.tolist() == [60, 80]
    assert y.grad.tolist() == [2, 4]


def test_wrong_node_hooks() -> None:
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])

    def run(kind: str, hook: Any) -> None:
        z = x * y
        getattr(z.grad_fn, kind)(hook)
        z.backward(ut.ones(2))

    with pytest.raises(GradientError, match="1 gradients for 2 inputs"):
        run("register_hook", lambda gi, go: (gi[0],))
    with pytest.raises(GradientError, match="2 gradients for 1 outputs"):
        run("register_prehook", lambda go: (go[0], go[0]))
    with pytest.raises(GradientError, match=r"MulBackward0.*a prehook"):
        run("register_prehook", lambda go: (ut.ones(3),))
    with pytest.raises(GradientError, match="MulBackward0"):
        run("register_hook", lambda gi, go: (ut.ones(3), gi[1]))
    with pytest.raises(GradientError, match="changed a gradient in place"):
        run("register_hook", lambda gi, go: (gi[0].mul_(2), None)[1])
    with pytest.raises(GradientError, match="changed a gradient in place"):
        run("register_prehook", lambda go: (go[0].mul_(2), None)[1])
    assert x.grad is None
    assert y.grad is None


def test_a_hook_that_raises_stops_the_backward() -> None:
    x = leaf(1.0)
    a = x * 2

    def bad(g: Any) -> None:
        raise LookupError("no")

    a.register_hook(bad)
    for workers in (1, 2):
        with pytest.raises(LookupError, match="no"):
            (a * 3).backward(retain_graph=True, workers=workers)
    assert x.grad is None


# Several tensors at once ---------------------------------------------------------------------
@workers
@both
def test_a_hook_on_several_tensors(create_graph: bool, workers: int) -> None:
    a, b, unused = leaf(2.0), leaf(3.0), leaf(1.0)
    c = a * b
    d = a * b
    seen: list[Any] = []
    handle = register_multi_grad_hook(
        (a, b, c, d, unused), lambda gs: seen.append([None if g is None else g.item() for g in gs])
    )
    how: Any = {"retain_graph": True, "create_graph": create_graph, "workers": workers}
    c.backward(**how)
    (c * 10).backward(**how)
    c.backward(inputs=[a], **how)
    grad(c, [b, c], **how)
    (c + d).backward(**how)
    assert seen == [
        [3, 2, 1, None, None],
        [30, 20, 10, None, None],
        [3, None, 1, None, None],
        [None, 2, 1, None, None],
        [6, 4, 1, 1, None],
    ]
    handle.remove()
    c.backward(**how)
    assert len(seen) == 5


@workers
def test_a_hook_on_any_of_several_tensors(workers: int) -> None:
    a, b, constant = leaf(2.0), leaf(3.0), ut.tensor(1.0)
    c = a * b
    seen: list[float] = []
    with register_multi_grad_hook([a, b, c, constant], lambda g: seen.append(g.item()), mode="any"):
        for _ in range(2):
            (c * 5).backward(retain_graph=True, workers=workers)
    c.backward()
    assert seen == [5, 5]


def test_a_hook_on_several_tensors_in_nested_and_failing_passes() -> None:
    a, b = leaf(2.0), leaf(3.0)
    seen: list[Any] = []
    register_multi_grad_hook([a, b], lambda gs: seen.append([g.item() for g in gs]))
    fails, inside = [True], [False]

    def inner(g: Any) -> None:
        if fails:
            raise LookupError
        if not inside[0]:
            inside[0] = True
            with ut.enable_grad():
                grad(a * a * b, [a, b])

    y = a * b
    b.register_hook(inner)
    for _ in range(2):
        with pytest.raises(LookupError):
            y.backward(retain_graph=True)
    fails.clear()
    seen.clear()  # a failed pass may have been complete for this hook
    y.backward()
    assert sorted(seen) == [[3, 2], [12, 4]]


def test_what_cannot_be_hooked_together() -> None:
    with pytest.raises(GradientError, match="does not require"):
        register_multi_grad_hook([leaf(1.0), ut.tensor(1.0)], print)
    with pytest.raises(ArgumentError, match="'some'"):
        register_multi_grad_hook([leaf(1.0)], print, mode="some")


@pytest.mark.parametrize("also", [False, True])
def test_a_captured_gradient_is_as_hooks_leave_it(also):
    """Whether or not the input is on the way to another one."""
    x = leaf([1.0, 2.0])
    y = x * 2
    y.register_hook(lambda g: g * 0.5)
    found = grad(y.sum(), [y, x] if also else [y])
    assert found[0].tolist() == [0.5, 0.5]
    assert not also or found[1].tolist() == [1.0, 1.0]


def test_hooks_of_one_tensor_share_the_gradient() -> None:
    """Until one returns another: what the first notes on it the second finds, as in torch."""
    x = ut.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    seen: list[Any] = []

    def note(grad: Any) -> None:
        grad.note = "mine"
        seen.append(grad)

    def read(grad: Any) -> Any:
        seen.append(grad)
        return grad * 10

    y.register_hook(note)
    y.register_hook(read)
    y.register_hook(seen.append)
    (y * 3).sum().backward()
    assert seen[0] is seen[1]
    assert seen[1].note == "mine"
    assert not hasattr(seen[2], "note")
    assert seen[2].tolist() == [30.0, 30.0]
    assert x.grad is not None
    assert x.grad.tolist() == [60.0, 60.0]
