"""A clamped beam under a load: a network that solves an equation of fourth order.

    python examples/beam.py [--steps N] [--nested]

w'''' = q on [0, 1], with w = w' = 0 at both ends. The network's value is multiplied by x²(1 - x)²,
so that the ends are as they should be. It learns from the equation alone. The fourth derivative
comes from `func.jet`, in one pass; with --nested from four nested gradients, to compare times.
"""

from __future__ import annotations

import argparse
import math
import time

import undertow as ut
from undertow import nn


def deflection(net: nn.Module, x: ut.Tensor) -> ut.Tensor:
    """The shape of the beam: zero at the ends, and so is its slope."""
    found: ut.Tensor = (x * (1 - x)) ** 2 * net(x)
    return found


def by_jet(net: nn.Module, x: ut.Tensor) -> ut.Tensor:
    """The fourth derivative in one pass."""
    fourth: ut.Tensor = ut.func.jet(lambda x: deflection(net, x), (x,), (ut.ones_like(x),), 4)[1][3]
    return fourth


def by_nested_gradients(net: nn.Module, x: ut.Tensor) -> ut.Tensor:
    """The same by four backward passes, each through the last."""
    x = x.clone().requires_grad_()
    found = deflection(net, x)
    for _ in range(4):
        (found,) = ut.autograd.grad(found.sum(), x, create_graph=True)
    return found


def solve(steps: int, nested: bool = False) -> float:
    """Train, and return the largest error of the shape, relative to its largest deflection."""
    ut.manual_seed(0)
    net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    fourth = by_nested_gradients if nested else by_jet
    x = ut.linspace(0, 1, 64).reshape(64, 1)
    # The load of the beam whose shape is known: w = sin²(πx).
    load = -8 * math.pi**4 * (2 * math.pi * x).cos()
    optimizer = ut.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = ((fourth(net, x) - load) / (8 * math.pi**4)).square().mean()
        loss.backward()
        optimizer.step()
    with ut.no_grad():
        wrong = (deflection(net, x) - (math.pi * x).sin().square()).abs().max()
    return float(wrong)


def main() -> None:
    """Solve it, and say how well and how long."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--nested", action="store_true", help="four nested gradients")
    given = parser.parse_args()
    start = time.perf_counter()
    error = solve(given.steps, given.nested)
    print(f"largest error {error:.4f} of 1 after {given.steps} steps", end=", ")
    print(f"{1e3 * (time.perf_counter() - start) / given.steps:.1f} ms each")


if __name__ == "__main__":
    main()
