"""Custom functions in unusual ways: what they give and what they refuse is as in torch.

Each case is the text of a program of `L`, the library: bodies of `forward(ctx, *a)` and
`backward(ctx, *g)` of `Fn`, and an expression of the leaf `x`.
"""

import textwrap
from typing import Any

import numpy as np
import pytest

import undertow as ut

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance
PROGRAM = """
seen = []
class Fn(L.autograd.Function):
    @staticmethod
    def forward(ctx, *a):
        {forward}
    @staticmethod
    def backward(ctx, *g):
        {backward}
x = L.tensor([1.0, 2.0, 3.0], dtype=L.float64, requires_grad=True)
other = L.ones(3, dtype=L.float64)
{body}
"""
TWICE, SAME = "return a[0] * 2", "return g[0]"
SAVED = "ctx.save_for_backward(a[0]); return a[0] ** 3"
CUBE = "(s,) = ctx.saved_tensors; return g[0] * 3 * s * s"
CASES = {
    "None for the second": ("return a[0] * a[1]", "return g[0], None", "Fn.apply(x, x * 2)"),
    "too few": ("return a[0] * a[1]", "return g[0]", "Fn.apply(x, x * 2)"),
    "too many": (TWICE, "return g[0], g[0]", "Fn.apply(x)"),
    "too many Nones": (TWICE, "return g[0], None, None", "Fn.apply(x)"),
    "for a number": ("return a[0] * a[1]", "return g[0], g[0]", "Fn.apply(x, 3)"),
    "for a constant": ("return a[0] * a[1]", "return g[0], g[0]", "Fn.apply(x, other)"),
    "of the wrong shape": (TWICE, "return g[0][:2]", "Fn.apply(x)"),
    "of another dtype": (TWICE, "return g[0].to(L.float32)", "Fn.apply(x)"),
    "a number": (TWICE, "return 3.0", "Fn.apply(x)"),
    "dirty": ("ctx.mark_dirty(a[0]); a[0].mul_(2); return a[0]", SAME, "Fn.apply(x * 1)"),
    "a dirty leaf": ("ctx.mark_dirty(a[0]); a[0].mul_(2); return a[0]", SAME, "Fn.apply(x)"),
    "dirty and gone": ("ctx.mark_dirty(a[0]); return a[0] * 2", SAME, "Fn.apply(x * 1)"),
    "not differentiable": (
        "i = a[0] * 0; ctx.mark_non_differentiable(i); return a[0] * 2, i",
        "seen.append(len(g)); return g[0] + g[1]",
        "(lambda y, i: y + i * 1)(*Fn.apply(x))",
    ),
    "integers beside": ("return a[0] * 2, (a[0] > 1).long()", "return g[0]", "Fn.apply(x)[0]"),
    "zeros for None": (
        "return a[0] * 2, a[0] * 3",
        "seen.append([h is None for h in g]); return g[0]",
        "Fn.apply(x)[0]",
    ),
    "None as it is": (
        "ctx.set_materialize_grads(False); return a[0] * 2, a[0] * 3",
        "seen.append([h is None for h in g]); return g[0]",
        "Fn.apply(x)[0]",
    ),
    "saved number": ("ctx.save_for_backward(a[0], 3); return a[0]", SAME, "Fn.apply(x)"),
    "saved None": (
        "ctx.save_for_backward(None, a[0]); return a[0] * 2",
        "n, s = ctx.saved_tensors; seen.append(n is None); return g[0] * s",
        "Fn.apply(x)",
    ),
    "saved twice": (
        "ctx.save_for_backward(a[0]); ctx.save_for_backward(a[0] * 3); return a[0] * 2",
        "(s,) = ctx.saved_tensors; return g[0] * s",
        "Fn.apply(x)",
    ),
    "attributes": ("ctx.k = a[1]; return a[0]", "return g[0] * ctx.k, None", "Fn.apply(x, 4)"),
    "asked for": (
        "return a[0] + a[1]",
        "seen.append(tuple(ctx.needs_input_grad)); return g[0], None, None",
        "Fn.apply(x, other, 2)",
    ),
    "the input itself": ("return a[0]", "return g[0] * 5", "Fn.apply(x)"),
    "a view": ("return a[0].view(3, 1)", "return g[0].view(3) * 5", "Fn.apply(x)"),
    "other outputs": ("return a[0] * 2, 's', None, 5", "return g[0]", "Fn.apply(x)[0]"),
    "words": (TWICE, SAME, "Fn.apply(x, k=3)"),
    "an instance": (TWICE, SAME, "Fn()(x)"),
    "one tensor twice": ("return a[0] * a[1]", "return g[0], g[0] * 10", "Fn.apply(x, x)"),
    "a sum": ("return a[0].sum()", "return g[0].expand(3)", "Fn.apply(x)"),
    "an error": (TWICE, "raise KeyError('mine')", "Fn.apply(x)"),
}
ORDERS = """
order = Fn.apply(x)
result = []
for _ in range(3):
    (order,) = L.autograd.grad(order.sum(), x, create_graph=True)
    result.append(order)
"""
KINDS = (KeyError, TypeError, ValueError, RuntimeError)


def outcome(lib: Any, forward: str, backward: str, body: str) -> Any:
    room: dict[str, Any] = {"L": lib}
    text = textwrap.dedent(PROGRAM).format(forward=forward, backward=backward, body=body)
    try:
        exec(text, room)
    except KINDS as error:
        return [kind.__name__ for kind in KINDS if isinstance(error, kind)]
    found = room["result"]
    found = found if isinstance(found, list) else [found]
    return [np.asarray(t.detach()).tolist() for t in found], room["seen"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_as_in_torch(name: str) -> None:
    forward, backward, use = CASES[name]
    body = f"found = {use}\nfound.sum().backward()\nresult = x.grad"
    expected = outcome(torch, forward, backward, body)
    found = outcome(ut, forward, backward, body)
    if isinstance(expected, list):  # errors: ours may be of more kinds
        assert set(expected) <= set(found)
    else:
        assert found == expected


def test_orders() -> None:
    assert outcome(ut, SAVED, CUBE, ORDERS) == outcome(torch, SAVED, CUBE, ORDERS)
