"""Random programs of operations, views, changes in place and custom functions, beside torch.

Where both give gradients, to first or second order, they are the same; where torch gives one, so
does Undertow. (The other way round is allowed: torch refuses some programs that are harmless,
such as a change in place after `tanh_`, because it saves less than it could.)
"""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np
import pytest

import undertow as ut

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance

ERRORS = (RuntimeError, ValueError, TypeError, IndexError)


def functions(lib: Any) -> dict[str, Any]:
    class Square(lib.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 2 * x

    class Doubled(lib.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    class Same(lib.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3

    return {"square": Square.apply, "doubled": Doubled.apply, "same": Same.apply}


# Each takes the tensors a and b, an index and a number; b has the shape of a or is that number.
STEPS: dict[str, Any] = {
    "mul": lambda a, b, i, f: a * b,
    "add": lambda a, b, i, f: a + b,
    "exp": lambda a, b, i, f: (a * 0.1).exp(),
    "tanh": lambda a, b, i, f: a.tanh(),
    "slice": lambda a, b, i, f: a[i : i + 2],
    "view": lambda a, b, i, f: a.view(-1),
    "flip": lambda a, b, i, f: a.flip(0),
    "clone": lambda a, b, i, f: a.clone(),
    "detach": lambda a, b, i, f: a.detach(),
    "unbind": lambda a, b, i, f: a.unbind(0)[0].expand(4).clone(),
    "sum": lambda a, b, i, f: a.sum().expand(a.shape[0]).clone(),
    "mul_": lambda a, b, i, f: a.mul_(b),
    "add_": lambda a, b, i, f: a.add_(b),
    "tanh_": lambda a, b, i, f: a.tanh_(),
    "zero_": lambda a, b, i, f: a.zero_(),
    "copy_": lambda a, b, i, f: a.copy_(a.detach() * 2 if isinstance(b, float) else b),
    "set": lambda a, b, i, f: a.__setitem__(i, f if isinstance(b, float) else b[i]),
    "detach_": lambda a, b, i, f: a.detach_(),
}
NAMES = [*STEPS, "square", "doubled", "same", "mul", "mul", "add", "slice", "mul_"]


def run(lib: Any, seed: int) -> tuple[list[str], Any]:
    """The program of a seed: what it did, and its gradients or where it failed."""
    choose = random.Random(seed)
    made = functions(lib)
    numbers = lambda: [choose.randint(-3, 3) / 2 + 0.25 for _ in range(4)]
    leaves = [lib.tensor(numbers(), dtype=lib.float64, requires_grad=True) for _ in range(2)]
    tensors = [*leaves, *(lib.tensor(numbers(), dtype=lib.float64) for _ in range(2))]
    done: list[str] = []
    for _ in range(choose.randint(2, 9)):
        name = choose.choice(NAMES)
        m, n = choose.randrange(len(tensors)), choose.randrange(len(tensors))
        a, b, i, f = tensors[m], tensors[n], choose.randrange(2), float(choose.randint(1, 3))
        b = b if b.shape == a.shape else f
        # Under no_grad torch's in-place Function detaches its input for good.
        quiet = choose.random() < 0.12 and name != "doubled"
        done.append(f"{'no_grad ' if quiet else ''}{name}({m}, {n}, {i}, {f})")
        try:
            with lib.set_grad_enabled(not quiet):
                out = made[name](a) if name in made else STEPS[name](a, b, i, f)
        except ERRORS as error:
            return done, f"failed: {error}"
        if out is not None and out is not a:
            tensors.append(out)
    try:
        total = sum((t * t * (j + 1)).sum() for j, t in enumerate(tensors))
        grads = list(lib.autograd.grad(total, leaves, allow_unused=True, create_graph=True))
        again = [(g * g).sum() for g in grads if g is not None and g.requires_grad]
        if again:
            grads += lib.autograd.grad(sum(again), leaves, allow_unused=True)
    except ERRORS as error:
        return done, f"failed: {error}"
    return done, [np.zeros(4) if g is None else g.detach().numpy() for g in grads]


@pytest.mark.parametrize("block", range(8))
def test_random_programs(block: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(block * 100, block * 100 + 100):
            done, expected = run(torch, seed)
            _, found = run(ut, seed)
            if isinstance(expected, str):
                continue
            story = f"seed {seed}: {'; '.join(done)}\n  undertow {found}\n  torch {expected}"
            assert not isinstance(found, str), story
            assert len(found) == len(expected), story
            for f, e in zip(found, expected, strict=True):
                np.testing.assert_allclose(f, e, rtol=1e-7, atol=1e-9, err_msg=story)
