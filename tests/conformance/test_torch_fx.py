"""`fx`, `export` and the functions of functions, beside torch's own."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import undertow as ut

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance

Program = Callable[[Any], Any]  # of the library, a module or a function


def mlp(t: Any) -> Any:
    return t.nn.Sequential(t.nn.Linear(4, 8), t.nn.ReLU(), t.nn.Dropout(), t.nn.Linear(8, 2))


def residual(t: Any) -> Any:
    class Residual(t.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.conv = t.nn.Conv2d(3, 3, 3, padding=1)
            self.norms = t.nn.ModuleList([t.nn.BatchNorm2d(3), t.nn.BatchNorm2d(3)])
            self.scale = t.nn.Parameter(t.ones(1))
            self.register_buffer("shift", t.zeros(1))

        def forward(self, x: Any, skip: bool = True) -> Any:
            y = self.norms[0](self.conv(x))
            y = t.nn.functional.relu(self.norms[1](y), inplace=True)
            return (x + y) * self.scale - self.shift

    return Residual()


def attention(t: Any) -> Any:
    class Attention(t.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.qkv = t.nn.Linear(8, 24)
            self.out = t.nn.Linear(8, 8)

        def forward(self, x: Any) -> Any:
            q, k, v = self.qkv(x).chunk(3, dim=-1)
            a = t.nn.functional.scaled_dot_product_attention(q, k, v)
            return self.out(a), a.shape[0]

    return Attention()


def functional(t: Any) -> Any:
    F = t.nn.functional

    def f(x: Any) -> Any:
        x = F.gelu(F.linear(x, x))
        x = F.layer_norm(F.dropout(x, 0.2), (4,))
        x = F.leaky_relu(F.pad(x, (1, 1)), 0.1)
        x = F.silu(F.interpolate(x, scale_factor=2.0), inplace=True)
        return F.group_norm(F.hardtanh(F.embedding(x, x)), 2)

    return f


def methods(t: Any) -> Any:
    def f(x: Any, y: Any = None) -> Any:
        z = x.view(-1, 2).transpose(0, 1).contiguous().float().to(t.float64)
        return z.sum(dim=-1, keepdim=True).unsqueeze(0), z.T, z.mean().item(), y

    return f


def arithmetic(t: Any) -> Any:
    def f(a: Any, b: Any) -> Any:
        return {"sum": a + b * 2, "rest": [1 - a, a // b, a % 3, a**b, -a, ~b], "at": a[1:, None]}

    return f


def joined(t: Any) -> Any:
    def f(x: Any, y: Any) -> Any:
        z = t.cat([x, y], dim=1)
        return t.stack((z, z)), t.where(z > 0, z, 0.0), t.add(x, y, alpha=2), t.flatten(z, 1)

    return f


def numbers(t: Any) -> Any:
    def f(x: Any) -> Any:
        return x * math.pi, t.clamp(x, max=math.inf), getattr(x, "dtype"), x.size(0) + 1  # noqa: B009

    return f


def keywords(t: Any) -> Any:
    def f(x: Any, *rest: Any, key: int = 2, **more: Any) -> Any:
        return t.relu(x) * key + rest[0] + more["z"]

    return f


def annotated(t: Any) -> Any:
    def f(x, y):  # type: ignore[no-untyped-def]
        return t.sigmoid(x), y

    f.__annotations__ = {"x": t.Tensor, "y": list[int], "return": tuple[t.Tensor, int]}
    return f


def pooled(t: Any) -> Any:
    class Pooled(t.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.features = t.nn.Sequential(t.nn.Conv1d(1, 2, 3), t.nn.Sequential(t.nn.GELU()))
            self.head = t.nn.Linear(2, 1)

        def forward(self, x: Any) -> Any:
            x = self.features(x)
            return self.head(t.nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))

    return Pooled()


def clashing_names(t: Any) -> Any:
    def f(input: Any, len_: Any, lambda_: Any) -> Any:
        add = input + 1
        return add.add(len_).sum(lambda_).sum_to_size(1), add.max()

    return f


PROGRAMS: list[Program] = [mlp, residual, attention, functional, methods, arithmetic, joined]
PROGRAMS += [numbers, keywords, annotated, pooled, clashing_names]


def bare(f: Any) -> Any:
    """Without annotations that are strings, as here, which torch writes as they are."""
    forward = f if f.__class__.__name__ == "function" else type(f).forward
    if any(isinstance(kind, str) for kind in forward.__annotations__.values()):
        forward.__annotations__ = {}
    return f


@pytest.mark.parametrize("program", PROGRAMS)
def test_graphs_and_code_read_the_same(program: Program) -> None:
    theirs = torch.fx.symbolic_trace(bare(program(torch)))
    ours = ut.fx.symbolic_trace(bare(program(ut)))
    assert ours.code == theirs.code
    assert str(ours.graph) == str(theirs.graph)
    assert [n.name for n in ours.graph.nodes] == [n.name for n in theirs.graph.nodes]


@pytest.mark.parametrize("program", [functional, arithmetic, joined])
def test_passes_give_the_same_graphs(program: Program) -> None:
    def passes(t: Any) -> Any:
        traced = t.fx.symbolic_trace(bare(program(t)))
        for node in traced.graph.nodes:
            if node.op == "call_function" and node.target is operator.mul:
                with traced.graph.inserting_after(node):
                    new = traced.graph.call_function(t.mul, node.args)
                node.replace_all_uses_with(new)
                traced.graph.erase_node(node)
        t.fx.replace_pattern(traced, lambda a, b: t.cat([a, b], dim=1), lambda a, b: a @ b)
        traced.graph.eliminate_dead_code()
        traced.recompile()
        return t.fx.Transformer(traced).transform().code

    assert passes(ut) == passes(torch)


def both(f: Callable[..., Any], *arrays: Any) -> None:
    """Results and gradients of first and second order agree."""
    found = []
    for t in (torch, ut):
        leaves = [t.tensor(a, dtype=t.float64, requires_grad=True) for a in arrays]
        outs = f(t, *leaves)
        total = sum((o * o).sum() for o in outs)
        first = t.autograd.grad(total, leaves, create_graph=True)
        second = t.autograd.grad(sum((g * g).sum() for g in first), leaves)
        found.append([v.detach().numpy() for v in (*outs, *first, *second)])
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


A = np.random.default_rng(0).uniform(0.5, 1.5, (5, 3))
B = np.random.default_rng(1).uniform(0.5, 1.5, (3,))


@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan(reverse: bool) -> None:
    def f(t: Any, x: Any) -> Any:
        scan = t._higher_order_ops.associative_scan
        return [scan(lambda a, b: a * b + a, x, 0, reverse=reverse, combine_mode="generic")]

    both(f, A)


def test_a_scan_is_its_loop() -> None:
    def loop(x: Any, carry: Any, t: Any) -> Any:
        outs = []
        for row in x:
            carry, out = carry * row.sin(), carry + row
            outs.append(out)
        return [carry, t.stack(outs)]

    def f(t: Any, x: Any, carry: Any) -> Any:
        if t is torch:
            return loop(x, carry, t)
        step = lambda c, r: (c * r.sin(), c + r)
        return list(ut._higher_order_ops.scan(step, carry, x))

    both(f, A, B)


def test_exported_programs_have_the_same_signature() -> None:
    def program(t: Any) -> Any:
        model = residual(t).eval()
        made = t.export.export(
            model, (t.ones(2, 3, 5, 5),), dynamic_shapes={"x": {0: t.export.Dim("batch")}}
        )
        signature = made.graph_signature
        return (
            [(s.kind.name, s.arg.name, s.target, s.persistent) for s in signature.input_specs],
            signature.user_inputs,
            signature.parameters,
            signature.buffers,
            dict(signature.inputs_to_parameters),
            made.module()(t.ones(4, 3, 5, 5)).shape,
        )

    theirs, ours = program(torch), program(ut)
    assert [tuple(v) if isinstance(v, (list, torch.Size)) else v for v in ours] == [
        tuple(v) if isinstance(v, (list, torch.Size)) else v for v in theirs
    ]
