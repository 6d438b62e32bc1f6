"""The backward pass against torch: one scenario, run with either library, must tell the same story.

A scenario takes the library (`undertow` or `torch`) and returns a log of plain Python values; an
error in it is part of the story, as "error". Where Undertow differs on purpose, a test says so.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import undertow as ut

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance

SCENARIOS: list[Callable[[Any], Any]] = []


def scenario(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    SCENARIOS.append(function)
    return function


def plain(value: Any) -> Any:
    """Tensors as nested lists with their shape and whether they have a history."""
    if isinstance(value, (ut.Tensor, torch.Tensor)):
        numbers = value.detach().tolist()
        return ("tensor", tuple(value.shape), numbers, value.requires_grad)
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value


def attempt(function: Callable[[], Any]) -> Any:
    try:
        return plain(function())
    except (RuntimeError, ValueError, TypeError, NotImplementedError, IndexError):
        return "error"


def close(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return bool(np.isclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True))
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(close(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    return bool(a == b)


def leaf(lib: Any, values: Any) -> Any:
    return lib.tensor(values, requires_grad=True)


# Seeds and roots -----------------------------------------------------------------------------
@scenario
def seeds(lib: Any) -> Any:
    log = []
    for values in (3.0, [3.0], [[3.0]]):
        x = leaf(lib, values)
        (x * x).backward()
        log.append(x.grad)
    x = leaf(lib, [1.0, 2.0])
    log.append(attempt(lambda: (x * 2).backward()))
    log.append(attempt(lambda: (x * 2).backward(lib.ones(3))))
    log.append(attempt(lambda: lib.ones(1).backward()))
    x.backward(lib.tensor([1.0, 2.0]))
    log.append(x.grad)
    return log


@scenario
def several_roots(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    y = x * x
    lib.autograd.backward([y, y.sum(), x], [lib.ones(2), None, lib.ones(2)])
    z = (x * 3).sum()
    a = lib.autograd.grad([z, z * 2], [x])
    return x.grad, a


@scenario
def grad_by_leaf_itself(lib: Any) -> Any:
    x = leaf(lib, 2.0)
    return lib.autograd.grad(x, x), lib.autograd.grad([x, x], x)


@scenario
def derivatives_that_are_zero(lib: Any) -> Any:
    x = leaf(lib, [0.5, -2.0])
    log = []
    for f, orders in (
        (lambda x: x**2, 2),
        (lambda x: x**3, 3),
        (lambda x: x.relu(), 1),
        (lambda x: x.abs(), 1),
        (lib.nn.functional.leaky_relu, 1),
        (lib.nn.functional.hardtanh, 1),
    ):
        y = f(x)
        for _ in range(orders):
            (y,) = lib.autograd.grad(y.sum(), x, create_graph=True)
        log.append((y, lib.autograd.grad(y.sum(), x)[0] + 0))  # torch's zeros have no storage
    a = leaf(lib, 1.0)
    (first,) = lib.autograd.grad(x[0] * a, x, create_graph=True)
    log.append(lib.autograd.grad(first.sum(), x, retain_graph=True, allow_unused=True))
    (second,) = lib.autograd.grad(first.sum(), x, create_graph=True, materialize_grads=True)
    log.append((second, lib.autograd.grad(second.sum(), x, materialize_grads=True)))
    return log


@scenario
def a_penalty_on_a_network_of_relus(lib: Any) -> Any:
    x, w = leaf(lib, [[1.0, -2.0]]), leaf(lib, [[1.0, 2.0], [3.0, -4.0]])
    b, v = leaf(lib, [0.5, -0.5]), leaf(lib, [[1.0], [2.0]])
    y = ((x @ w + b).relu() @ v).sum()
    (g,) = lib.autograd.grad(y, x, create_graph=True)
    return lib.autograd.grad((g * g).sum(), (w, b, v, x))


# Hooks ---------------------------------------------------------------------------------------
@scenario
def hook_order_and_counts(lib: Any) -> Any:
    log: list[Any] = []
    x, w = leaf(lib, 2.0), leaf(lib, 3.0)
    a = x * w
    b = a * a + a
    for name, t in (("x", x), ("w", w), ("a", a), ("b", b)):
        t.register_hook(lambda g, n=name: log.append((n, 1, g.item())))
        t.register_hook(lambda g, n=name: log.append((n, 2, g.item())) or g * 2)
    for t, name in ((x, "x"), (w, "w")):
        t.register_post_accumulate_grad_hook(
            lambda t, n=name: log.append((n, "post", t.grad.item()))
        )
    b.backward(retain_graph=True)
    chain = [entry for entry in log if entry[0] in ("a", "b")]
    leaves = sorted(str(entry) for entry in log if entry[0] in ("x", "w"))
    return chain, leaves, x.grad, w.grad


@scenario
def hooks_without_a_gradient(lib: Any) -> Any:
    log: list[Any] = []
    x = leaf(lib, [1.0, 2.0, 3.0])
    a, b, c = x.unbind()
    for name, t in (("a", a), ("b", b), ("c", c), ("x", x)):
        t.register_hook(lambda g, n=name: log.append((n, g)))
    a.grad_fn.register_prehook(lambda outs: log.append(("before", list(outs))))
    a.grad_fn.register_hook(lambda ins, outs: log.append(("after", list(ins), list(outs))))
    b.retain_grad()
    (a * 2).backward()
    silent = make(lib, lambda ctx, x: x * 2, lambda ctx, g: None)
    y = x * 3
    y.register_hook(lambda g: log.append(("y", g)))
    y.grad_fn.register_prehook(lambda outs: log.append(("before y", list(outs))))
    y.grad_fn.register_hook(lambda ins, outs: log.append(("after y", list(ins), list(outs))))
    silent(y).sum().backward()
    return plain(log), x.grad, b.grad


@scenario
def hooks_of_the_node_of_an_input(lib: Any) -> Any:
    log: list[Any] = []
    x = leaf(lib, [1.0, 2.0])
    b = x * 2
    b.grad_fn.register_prehook(lambda outs: log.append(plain(outs)) or (outs[0] * 100,))
    b.grad_fn.register_hook(lambda ins, outs: log.append((plain(ins), plain(outs))))
    y = (b * 3).sum()
    y.backward(inputs=[b], retain_graph=True)
    got = lib.autograd.grad(y, b, retain_graph=True)
    y.backward(inputs=[b, x])
    return log, got, b.grad, x.grad


@scenario
def post_accumulate_hook_that_returns(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    x.register_post_accumulate_grad_hook(lambda t: t.grad)
    return attempt(lambda: x.sum().backward()), x.grad


@scenario
def seeds_of_other_dtypes(lib: Any) -> Any:
    log = []
    for dtype in (lib.float64, lib.float16, lib.int64, lib.bool, lib.complex64):
        x = leaf(lib, [1.0, 2.0])
        seed = lib.ones(2, dtype=dtype)
        log.append(attempt(lambda x=x, seed=seed: (x * 2).backward(seed)))
        log.append((x.grad, str(x.grad.dtype).partition(".")[2] if x.grad is not None else None))
    return log


@scenario
def hooks_on_several_tensors(lib: Any) -> Any:
    log: list[Any] = []
    multi = lib.autograd.graph.register_multi_grad_hook
    a, b = leaf(lib, 2.0), leaf(lib, 3.0)
    c, d = a * b, a * b
    multi((a, b, c, d), lambda gs: log.append(plain(list(gs))))
    (c * 1).backward(retain_graph=True)  # from c itself torch does not count c
    (c * 1).backward(inputs=[a], retain_graph=True)
    (c + d).backward()
    x = leaf(lib, [1.0, 2.0])
    y = x * 2
    multi((x, y), lambda g: log.append(plain(g)), mode="any")
    (y * 3).sum().backward()
    return log


@scenario
def called_nodes(lib: Any) -> Any:
    x, w = leaf(lib, [1.0, 2.0]), leaf(lib, [3.0, 4.0])
    y = x * w
    log = [y.grad_fn(lib.tensor([1.0, 10.0])), (x * 3).grad_fn(lib.ones(2))]
    log.append(x.sum().grad_fn(lib.tensor(2.0)))
    accumulate = y.grad_fn.next_functions[0][0]
    with lib.no_grad():
        log.append(accumulate(lib.ones(2)))
    y.grad_fn.metadata["who"] = "me"
    return plain(log), x.grad, y.grad_fn.metadata, accumulate.metadata


@scenario
def changes_of_saved_tensors(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0, 3.0])
    with lib.autograd.graph.allow_mutation_on_saved_tensors():
        y = x.clone()
        z = (y * y).sum() + y.exp().sum()  # of a part of y, torch gives wrong numbers
        y[:2].zero_()
        y.add_(1)
        z.backward()
    return x.grad, y


@scenario
def hook_added_and_removed_by_a_hook(lib: Any) -> Any:
    log: list[Any] = []
    x = leaf(lib, 1.0)
    y = x * 2
    handles: dict[str, Any] = {}

    def first(g: Any) -> None:
        log.append("first")
        handles["last"].remove()
        y.register_hook(lambda g: log.append("new"))

    y.register_hook(first)
    handles["last"] = y.register_hook(lambda g: log.append("last"))
    y.backward(retain_graph=True)
    log.append("again")
    y.backward()
    return log


@scenario
def hooks_under_grad(lib: Any) -> Any:
    log: list[Any] = []
    x = leaf(lib, 2.0)
    a = x * 3
    y = a * a
    a.retain_grad()
    for name, t in (("y", y), ("a", a), ("x", x)):
        t.register_hook(lambda g, n=name: log.append((n, g.item())) or g * 2)
    x.register_post_accumulate_grad_hook(lambda t: log.append("post"))
    log.append(lib.autograd.grad(y, x, retain_graph=True))
    log.append(lib.autograd.grad(y, a, retain_graph=True))
    lib.autograd.grad(y, [a, x, y], retain_graph=True)
    return log, x.grad, a.grad


@scenario
def root_hooks(lib: Any) -> Any:
    log: list[Any] = []
    x = leaf(lib, 2.0)
    y = x * x
    y.register_hook(lambda g: log.append(g.item()) or g * 3)
    y.retain_grad()
    y.backward()
    z = leaf(lib, 1.0)
    z.register_hook(lambda g: g * 5)
    z.backward()
    return log, x.grad, y.grad, z.grad


@scenario
def node_hooks(lib: Any) -> Any:
    log: list[Any] = []
    x, y = leaf(lib, [1.0, 2.0]), leaf(lib, [3.0, 4.0])
    z = x * y
    z.register_hook(lambda g: log.append(("tensor", g.tolist())))
    z.grad_fn.register_prehook(lambda go: log.append(("pre", [g.tolist() for g in go])))
    z.grad_fn.register_prehook(lambda go: (go[0] * 2,))
    z.grad_fn.register_hook(
        lambda gi, go: log.append(("post", [g.tolist() for g in gi], [g.tolist() for g in go]))
    )
    z.grad_fn.register_hook(lambda gi, go: (gi[0] * 10, gi[1]))
    z.backward(lib.ones(2))
    return log, x.grad, y.grad


@scenario
def accumulate_node_hooks(lib: Any) -> Any:
    log: list[Any] = []
    x = leaf(lib, 1.0)
    y = x * 2
    acc = y.grad_fn.next_functions[0][0]
    x.register_post_accumulate_grad_hook(lambda t: log.append("post accumulate"))
    x.register_hook(lambda g: log.append("tensor"))
    acc.register_prehook(lambda go: log.append(("pre", go[0].item())))
    acc.register_hook(lambda gi, go: log.append(("post", len(gi), go[0].item())))
    y.backward()
    return log, x.grad


@scenario
def capture_does_not_run_the_node(lib: Any) -> Any:
    log: list[Any] = []
    x = leaf(lib, 2.0)
    a = x * x
    y = a * 3
    a.grad_fn.register_hook(lambda gi, go: log.append("node of a ran"))
    a.register_hook(lambda g: log.append("hook of a ran"))
    lib.autograd.grad(y, a, retain_graph=True)
    log.append("then")
    y.backward()
    return log


@scenario
def wrong_hook_results(lib: Any) -> Any:
    def run(hook: Any) -> Any:
        x = leaf(lib, [1.0, 2.0])
        y = x * 2
        y.register_hook(hook)
        return attempt(lambda: (y.sum().backward(), x.grad)[1])

    return [run(lambda g: lib.ones(3)), run(lambda g: 3.0), run(lambda g: None)]


# retain_grad, inputs, create_graph -----------------------------------------------------------
@scenario
def retain_grad(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    a = x * 3
    log = [a.retains_grad, x.retains_grad]
    a.retain_grad()
    x.retain_grad()
    a.register_hook(lambda g: g * 10)
    log += [a.retains_grad, x.retains_grad]
    y = (a * a).sum()
    y.backward(retain_graph=True)
    log.append(a.grad)
    y.backward(retain_graph=True)
    log.append(a.grad)
    b = x * 2
    b.retain_grad()
    b.mul_(3)
    (b * 5).sum().backward()
    log += [b.grad, x.grad, attempt(lambda: lib.ones(1).retain_grad())]
    return log


@scenario
def backward_with_inputs(lib: Any) -> Any:
    x, y = leaf(lib, [1.0, 2.0]), leaf(lib, [3.0, 4.0])
    a = x * y
    z = (a * a).sum()
    z.backward(inputs=[x], retain_graph=True)
    log = [x.grad, y.grad]
    z.backward(inputs=a, retain_graph=True)
    log += [x.grad, y.grad, a.grad, a.retains_grad]
    z.backward(inputs=[y, y, a], retain_graph=True)
    log += [x.grad, y.grad, a.grad]
    log.append(attempt(lambda: z.backward(inputs=[], retain_graph=True)))
    other = leaf(lib, 1.0)
    z.backward(inputs=[other], retain_graph=True)
    log.append(other.grad)
    return log


@scenario
def create_graph_accumulates(lib: Any) -> Any:
    x = leaf(lib, 3.0)
    (x**2).backward()
    old = x.grad
    (x**3).backward(create_graph=True)
    log = [old, x.grad, x.grad is old]
    g, x.grad = x.grad, None
    g.backward()
    log.append(x.grad)
    kept = x.grad
    (x * 2).backward()
    log += [x.grad is kept, kept]
    return log


@scenario
def unused_and_materialized(lib: Any) -> Any:
    x, y = leaf(lib, [1.0, 2.0]), leaf(lib, 3.0)
    z = (x * 2).sum()
    grad = lib.autograd.grad
    return [
        attempt(lambda: grad(z, [x, y], retain_graph=True)),
        grad(z, [x, y], retain_graph=True, allow_unused=True),
        grad(z, [x, y], retain_graph=True, materialize_grads=True),
        attempt(lambda: grad(z, [x, y], allow_unused=False, materialize_grads=True)),
        attempt(lambda: grad(z, [lib.ones(1)], retain_graph=True)),
        attempt(lambda: grad(z, [lib.ones(1)], retain_graph=True, allow_unused=True)),
    ]


@scenario
def non_leaf_inputs(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    a = x * 3
    b = a * a
    c = (b * a).sum()
    return lib.autograd.grad(c, [a, b, x, c]), x.grad, a.grad


@scenario
def freed_graphs(lib: Any) -> Any:
    def twice(f: Any) -> Any:
        x = leaf(lib, [1.0, 2.0])
        y = f(x)
        y.backward()
        return attempt(lambda: (y.backward(), x.grad)[1])

    return [
        twice(lambda x: x.sum()),
        twice(lambda x: (x + x).sum()),
        twice(lambda x: (x * x).sum()),
        twice(lambda x: x.exp().sum()),
        twice(lambda x: x.view(2, 1).t().sum()),
        twice(lambda x: (-x).sum()),
    ]


@scenario
def second_order(lib: Any) -> Any:
    x = leaf(lib, [0.5, 1.5])
    w = leaf(lib, [[1.0, 2.0], [3.0, 4.0]])
    y = lib.tanh(w @ x).sum()
    (g,) = lib.autograd.grad(y, x, create_graph=True)
    penalty = (g**2).sum()
    hx, hw = lib.autograd.grad(penalty, [x, w], create_graph=True)
    (t,) = lib.autograd.grad((hx * hx).sum() + hw.sum(), x)
    return g.detach(), hx.detach(), hw.detach(), t


@scenario
def seeds_with_history(lib: Any) -> Any:
    x, v = leaf(lib, [1.0, 2.0]), leaf(lib, [3.0, 4.0])
    (g,) = lib.autograd.grad(x**2, x, v, create_graph=True)
    (h,) = lib.autograd.grad(x**2, x, v)
    return g, h, lib.autograd.grad(g.sum(), [x, v])


# Leaves, modes, detaching --------------------------------------------------------------------
@scenario
def leaf_rules(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    log = []
    with lib.no_grad():
        quiet = x * 2
    for t in (x, lib.ones(1), x * 2, x.detach(), quiet, x.clone(), x[:1], lib.ones(2) * 2, x > 1):
        log.append((t.is_leaf, t.requires_grad, t.grad_fn is None))
    y = x * 2
    log.append(attempt(lambda: y.requires_grad_(False)))
    log.append(attempt(lambda: lib.tensor([1]).requires_grad_()))
    y.detach_()
    log.append((y.is_leaf, y.requires_grad))
    log.append(attempt(lambda: x[:1].detach_()))
    z = lib.ones(2)
    z.requires_grad_()
    log.append((z.is_leaf, z.requires_grad))
    return log


@scenario
def in_place_on_leaves(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    log = [
        attempt(lambda: x.add_(1)),
        attempt(lambda: x[:1].add_(1)),
        attempt(lambda: x.view(2, 1).mul_(2)),
    ]
    with lib.no_grad():
        x.add_(1)
        x[:1].mul_(3)
    x.detach().mul_(2)
    (x * x).sum().backward()
    return log, x.is_leaf, x.grad


@scenario
def changed_saved_values(lib: Any) -> Any:
    def change(f: Any, how: Any) -> Any:
        x, w = leaf(lib, [1.0, 2.0]), lib.tensor([3.0, 4.0])
        y = f(x, w)
        how(x, w, y)
        return attempt(lambda: (y.sum().backward(), x.grad)[1])

    def quietly(x: Any, w: Any, y: Any) -> None:
        with lib.no_grad():
            x.mul_(2)

    return [
        change(lambda x, w: x * w, lambda x, w, y: w.add_(1)),
        change(lambda x, w: x * w, lambda x, w, y: w[:1].add_(1)),
        change(lambda x, w: x * w, lambda x, w, y: w.detach().add_(1)),
        change(lambda x, w: x + w, lambda x, w, y: w.add_(1)),
        change(lambda x, w: x.exp(), lambda x, w, y: y.mul_(2)),
        change(lambda x, w: x * x, lambda x, w, y: y.mul_(2)),
        change(lambda x, w: x * 2, lambda x, w, y: y.mul_(2)),
        change(lambda x, w: x * x, quietly),
        change(lambda x, w: x * w, quietly),
    ]


@scenario
def modes(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    log = []
    with lib.no_grad():
        log.append((x * 2).requires_grad)
        log.append(lib.ones(1, requires_grad=True).requires_grad)
        with lib.enable_grad():
            log.append((x * 2).requires_grad)
    with lib.inference_mode():
        c = lib.ones(2) * 3
        log += [c.is_inference(), (x * 2).requires_grad, lib.is_grad_enabled()]
        log.append(x.is_inference())
        v = x[:1]
        log.append(v.is_inference())
        with lib.inference_mode(False):
            log.append((x * 2).requires_grad)
    log.append(attempt(lambda: x * c))
    log.append(attempt(lambda: (x + c).requires_grad))
    log.append(attempt(lambda: c.add_(1)))
    log.append(attempt(lambda: c.requires_grad_()))
    log.append((c * 2).requires_grad)
    log.append((c * 2).is_inference())

    @lib.no_grad()
    def generator() -> Any:
        yield lib.is_grad_enabled()
        yield lib.is_grad_enabled()

    it = generator()
    log += [next(it), lib.is_grad_enabled(), next(it)]
    return log


@scenario
def detach_in_the_middle(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    a = x * x
    y = a * a.detach() + a.data * x
    y.sum().backward()
    with lib.no_grad():
        b = x * 3
    (x * b).sum().backward()
    return x.grad


@scenario
def backward_inside_no_grad(lib: Any) -> Any:
    x = leaf(lib, 3.0)
    y = x**3
    with lib.no_grad():
        y.backward(retain_graph=True)
        (g,) = lib.autograd.grad(y, x, create_graph=True)
    return x.grad, g, lib.autograd.grad(g, x)


@scenario
def switching_leaves(lib: Any) -> Any:
    log: list[Any] = []
    x = leaf(lib, 2.0)
    x.register_hook(lambda g: log.append(g.item()))
    y = x * x
    x.requires_grad_(False)
    log.append((x * 2).requires_grad)
    y.backward(retain_graph=True)
    log.append(x.grad)
    x.requires_grad_(True)
    y.backward()
    return log, x.grad


# The graph -----------------------------------------------------------------------------------
def shape_of(node: Any, depth: int = 4) -> Any:
    """The names and edges of a graph."""
    if node is None:
        return None
    name = node.name().rsplit("::", 1)[-1]
    if depth == 0:
        return name
    return name, [(shape_of(n, depth - 1), i) for n, i in node.next_functions]


@scenario
def graph_structure(lib: Any) -> Any:
    x, y, c = leaf(lib, [1.0, 2.0]), leaf(lib, [3.0, 4.0]), lib.ones(2)
    return [
        shape_of((x * y).grad_fn),
        shape_of((x * c).grad_fn),
        shape_of(((x + y) - x).exp().grad_fn),
        shape_of((-x).tanh().sigmoid().grad_fn),
        shape_of(x.clone().grad_fn),
        shape_of((x / y).sin().grad_fn),
        shape_of(x.view(2, 1).grad_fn),
        shape_of(x.expand(3, 2).grad_fn),
        (x * y).grad_fn.next_functions[0][0] is (x + x).grad_fn.next_functions[0][0],
        (x * y).grad_fn.next_functions[0][0].variable is x,
        x.grad_fn,
    ]


@scenario
def several_outputs(lib: Any) -> Any:
    x = leaf(lib, [3.0, 1.0, 2.0])
    values, indices = x.sort()
    a, b, c = x.unbind(0)
    log = [values.requires_grad, indices.requires_grad, values.output_nr]
    (values[0] * 10 + a * b * c).backward()
    return log, x.grad


# Functions -----------------------------------------------------------------------------------
def make(lib: Any, forward: Any, backward: Any) -> Any:
    return type(
        "Made",
        (lib.autograd.Function,),
        {"forward": staticmethod(forward), "backward": staticmethod(backward)},
    ).apply


@scenario
def function_basics(lib: Any) -> Any:
    log: list[Any] = []

    def forward(ctx: Any, x: Any, n: Any, y: Any) -> Any:
        log.append(("forward", ctx.needs_input_grad, lib.is_grad_enabled()))
        ctx.save_for_backward(x, y)
        ctx.n = n
        return x * n, y * 2, "text"

    def backward(ctx: Any, g: Any, h: Any, t: Any) -> Any:
        assert len(ctx.saved_tensors) == 2
        log.append(("backward", g.tolist(), h.tolist(), t, lib.is_grad_enabled()))
        return g * ctx.n, None, h * 2

    f = make(lib, forward, backward)
    x, y = leaf(lib, [1.0, 2.0]), leaf(lib, [3.0, 4.0])
    a, b, text = f(x, 3, y)
    log += [text, a.output_nr, b.output_nr, len(a.grad_fn.next_functions), a.grad_fn.name()]
    a.sum().backward(retain_graph=True)
    log += [x.grad, y.grad]
    b.sum().backward()
    log += [x.grad, y.grad, attempt(lambda: a.sum().backward())]
    return log


@scenario
def function_input_as_output(lib: Any) -> Any:
    f = make(lib, lambda ctx, x: x, lambda ctx, g: g * 5)
    x = leaf(lib, [1.0, 2.0])
    y = f(x)
    log = [y is x, y.is_leaf, x.is_leaf]
    y.sum().backward()
    a = x * 2
    b = f(a)
    log.append(attempt(lambda: b.mul_(2)))
    with lib.no_grad():
        c = f(x)
    log += [c is x, c.requires_grad]
    return log, x.grad


@scenario
def function_in_place(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        x.add_(1)
        ctx.mark_dirty(x)
        return x

    f = make(lib, forward, lambda ctx, g: g * 10)
    x = leaf(lib, [1.0, 2.0])
    a = x * 3
    b = f(a)
    log = [b is a, a.grad_fn.name(), attempt(lambda: f(leaf(lib, [1.0])))]
    (a * a).sum().backward()
    log.append(x.grad)
    x.grad = None
    c = x * 1
    f(c[1:])
    (c * c).sum().backward()
    return log, c, x.grad


@scenario
def function_missing_gradients(lib: Any) -> Any:
    log: list[Any] = []
    stop = make(lib, lambda ctx, x: x * 2, lambda ctx, g: None)

    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    quiet = make(lib, forward, lambda ctx, g, h: log.append((g is None, h is None)) or g * 2)
    loud = make(lib, lambda ctx, x: x * 3, lambda ctx, g: log.append(g.tolist()) or g * 3)
    x = leaf(lib, [1.0, 2.0])
    stop(loud(x)).sum().backward()
    log.append(x.grad)
    quiet(x)[0].sum().backward()
    return log, x.grad


@scenario
def function_constants(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        mask = (x > 1) * 1.0
        ctx.mark_non_differentiable(mask)
        return x * mask, mask

    f = make(lib, forward, lambda ctx, g, h: g + h)
    x = leaf(lib, [1.0, 2.0])
    y, mask = f(x)
    y.sum().backward()
    return y, mask, x.grad


@scenario
def function_wrong_counts(lib: Any) -> Any:
    def run(result: Any) -> Any:
        f = make(lib, lambda ctx, x, n: x * n, lambda ctx, g: result(g))
        x = leaf(lib, [1.0, 2.0])
        return attempt(lambda: (f(x, 2).sum().backward(), x.grad)[1])

    return [
        run(lambda g: g),
        run(lambda g: (g, g)),
        run(lambda g: (g, None)),
        run(lambda g: (g, None, None)),
        run(lambda g: (g, None, g)),
        run(lambda g: (lib.ones(3), None)),
        run(lambda g: (None, None)),
        run(lambda g: (1.0, None)),
    ]


@scenario
def function_second_order(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(x, y)
        return y * x

    def backward(ctx: Any, g: Any) -> Any:
        x, _ = ctx.saved_tensors
        return g * (x.exp() + x * x.exp())

    f = make(lib, forward, backward)
    x = leaf(lib, [0.5, 1.0])
    (g,) = lib.autograd.grad(f(x).sum(), x, create_graph=True)
    (h,) = lib.autograd.grad(g.sum(), x, create_graph=True)
    return g, h, lib.autograd.grad(h.sum(), x)


# Functional, checkpoints, hooks on saved tensors ---------------------------------------------
@scenario
def functional(lib: Any) -> Any:
    F = lib.autograd.functional
    x, y = lib.tensor([0.5, 1.0]), lib.tensor([2.0, -1.0])

    def two(x: Any, y: Any) -> Any:
        return (x * y).sum(), (x.exp() * y)

    def one(x: Any, y: Any) -> Any:
        return (x * x * y).sum()

    v = (lib.tensor([1.0, 2.0]), lib.tensor([-1.0, 0.5]))
    return [
        F.vjp(two, (x, y), (lib.tensor(1.0), lib.tensor([1.0, 2.0]))),
        F.jvp(two, (x, y), v),
        F.jacobian(two, (x, y)),
        F.jacobian(lambda x: x.exp(), x),
        F.hessian(one, (x, y)),
        F.hessian(lambda x: (x**3).sum(), x),
        F.hvp(one, (x, y), v),
        F.vhp(one, (x, y), v),
        F.vjp(lambda x: lib.tensor([1.0]), x),
        attempt(lambda: F.vjp(lambda x: lib.tensor([1.0]), x, strict=True)),
        attempt(lambda: F.jacobian(lambda x, y: x, (x, y), strict=True)),
        attempt(lambda: F.hessian(lambda x: x.sum(), x, strict=True)),
        attempt(lambda: F.vjp(two, (x, y))),
        attempt(lambda: F.jvp(two, (x, y), x)),
        attempt(lambda: F.hessian(lambda x: x, x)),
    ]


@scenario
def functional_create_graph(lib: Any) -> Any:
    F = lib.autograd.functional
    x = leaf(lib, [0.5, 1.0])
    j = F.jacobian(lambda x: x**3, x, create_graph=True)
    h = F.hessian(lambda x: (x**3).sum(), x, create_graph=True)
    _, p = F.hvp(lambda x: (x**4).sum(), x, lib.ones(2), create_graph=True)
    return [
        j.requires_grad,
        h.requires_grad,
        lib.autograd.grad(j.sum(), x),
        lib.autograd.grad(h.sum(), x),
        lib.autograd.grad(p.sum(), x),
    ]


@scenario
def checkpointing(lib: Any) -> Any:
    if lib is ut:
        checkpoint = ut.autograd.checkpoint
    else:
        from torch.utils.checkpoint import checkpoint
    runs: list[int] = []
    w = leaf(lib, [2.0, 3.0])

    def f(x: Any, *, k: float) -> Any:
        runs.append(1)
        return (x * w).tanh() * k, x.exp()

    x = leaf(lib, [0.5, 1.0])
    a, b = checkpoint(f, x * 2, k=3.0, use_reentrant=False)
    (a * b).sum().backward()
    log = [len(runs), x.grad, w.grad]
    a, b = checkpoint(f, x, k=1.0, use_reentrant=False)
    (g,) = lib.autograd.grad((a * b).sum(), x, create_graph=True)
    return log, g.detach(), lib.autograd.grad(g.sum(), [x, w])


@scenario
def saved_tensors_hooks(lib: Any) -> Any:
    log: list[Any] = []
    hooks = lib.autograd.graph.saved_tensors_hooks
    x = leaf(lib, [1.0, 2.0])
    with hooks(lambda t: log.append(t.tolist()) or t * 2, lambda t: t / 2):
        y = x.exp() * x
    log.append("forward")
    y.sum().backward(retain_graph=True)
    log.append(x.grad)
    with hooks(lambda t: None, lambda n: None):
        z = x.exp()
    log.append(attempt(lambda: z.sum().backward()))
    with hooks(lambda t: t.add_(1), lambda t: t):
        log.append(attempt(lambda: x.exp().requires_grad))
    message = lib.autograd.graph.disable_saved_tensors_hooks

    def refused() -> Any:
        with message("no"), hooks(lambda t: t, lambda t: t):
            pass

    log.append(attempt(refused))
    return sorted(log[:3]), log[3:]


@scenario
def anomalies(lib: Any) -> Any:
    x = leaf(lib, [0.0, 1.0])

    def run(**options: Any) -> Any:
        with lib.autograd.detect_anomaly(**options):
            ((x * 0) / x).sum().backward()

    log = [attempt(run), attempt(lambda: run(check_nan=False))]
    return [entry == "error" for entry in log]


@scenario
def gradient_edges(lib: Any) -> Any:
    edge_of = lib.autograd.graph.get_gradient_edge
    x = leaf(lib, [1.0, 2.0])
    a = x * x
    e = edge_of(a)
    y = (a * 3).sum()
    del a
    return lib.autograd.grad(y, e, retain_graph=True), lib.autograd.grad(e, x, lib.ones(2))


# The test itself -----------------------------------------------------------------------------
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("run", SCENARIOS, ids=lambda run: run.__name__)
def test_same_story(run: Callable[[Any], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = plain(run(torch))
    found = plain(run(ut))
    assert close(found, expected), f"{run.__name__}:\n  undertow {found}\n  torch    {expected}"


def test_a_broadcast_gradient_of_a_function_is_summed() -> None:
    """Both sum one that broadcasts from the input's shape, and refuse one that does not."""
    for lib in (torch, ut):
        for values, expected in (([1.0], [2.0]), ([1.0, 1.0, 1.0], "error")):
            f = make(lib, lambda ctx, x: x * 2, lambda ctx, g, lib=lib: lib.ones(2))
            x = leaf(lib, values)
            found = attempt(lambda f=f, x=x: (f(x).sum().backward(), x.grad.tolist())[1])  # type: ignore[misc]
            assert found == expected


# Where Undertow differs on purpose -----------------------------------------------------------
def test_a_requested_gradient_has_been_through_its_hooks() -> None:
    """In torch it depends on whether the tensor's own node has to run for another input."""
    for lib, expected in ((torch, [48.0, 24.0]), (ut, [48.0, 48.0])):
        x = leaf(lib, 2.0)
        a = x * 3
        y = a * a * 2
        a.register_hook(lambda g: g * 2)
        alone = lib.autograd.grad(y, a, retain_graph=True)[0].item()
        beside = lib.autograd.grad(y, [a, x])[0].item()
        assert [alone, beside] == expected


def test_once_differentiable_is_never_silently_constant() -> None:
    """torch returns a constant when the incoming gradient is one; here that is an error."""
    for lib, expected in ((torch, False), (ut, True)):
        once = lib.autograd.function.once_differentiable
        backward = once(lambda ctx, g: g * 2)
        f = make(lib, lambda ctx, x: x * 2, backward)
        x = leaf(lib, [1.0])
        (g,) = lib.autograd.grad(f(x), x, create_graph=True)
        assert g.requires_grad is expected


def test_a_hook_survives_a_change_of_its_view() -> None:
    """torch drops the hooks of a view that is changed; here they see the old value's gradient."""
    for lib, expected in ((torch, []), (ut, [[5.0, 50.0]])):
        x = leaf(lib, [1.0, 2.0, 3.0])
        view = (x * 1)[:2]
        seen: list[Any] = []
        view.register_hook(lambda g, seen=seen: seen.append(g.tolist()))
        view.mul_(5)
        (view * lib.tensor([1.0, 10.0])).sum().backward()
        assert seen == expected
        assert x.grad.tolist() == [5, 50, 0]


def test_data_has_a_version_of_its_own() -> None:
    """A way past the check, which programs take on purpose; `detach` is none in ours."""
    for lib, expected in ((torch, [6.0]), (ut, [6.0])):
        x, w = leaf(lib, [1.0]), lib.tensor([3.0])
        y = x * w
        w.data.mul_(2)
        assert attempt(lambda x=x, y=y: (y.backward(), x.grad.tolist())[1]) == expected  # type: ignore[misc]


def test_results_of_grad_do_not_alias_the_seed() -> None:
    for lib, expected in ((torch, True), (ut, False)):
        x, g = leaf(lib, [1.0, 2.0]), lib.ones(2)
        (r,) = lib.autograd.grad(x.view(2), x, g)
        assert (r.data_ptr() == g.data_ptr()) is expected
