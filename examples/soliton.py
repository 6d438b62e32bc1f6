"""A physics-informed network finds a soliton: third derivatives of a network, and their gradient.

    python examples/soliton.py --steps 1500 --output soliton.png

The Korteweg-de Vries equation, u_t + 6 u u_x + u_xxx = 0, describes waves in shallow water. The
network u(x, t) is given only the wave at t = 0, and is trained until the equation holds at random
points: the loss contains three derivatives of the network, so its gradient is of fourth order. A
single wave keeps its form and travels with its own speed c, which tells how good the answer is:
u = c/2 · sech²(√c/2 · (x - c t)).
"""

import argparse
from pathlib import Path

from matplotlib.figure import Figure
from tqdm import tqdm

import undertow as ut
from undertow import nn

SPEED, HALF, TIME = 1.0, 8.0, 1.5  # of the wave; x from -HALF to HALF, t from 0 to TIME


def soliton(x: ut.Tensor, t: ut.Tensor) -> ut.Tensor:
    """The exact answer."""
    return SPEED / 2 / (SPEED**0.5 / 2 * (x - SPEED * t)).cosh() ** 2


def network(width: int = 40) -> nn.Module:
    """(x, t) to u, smooth enough to be differentiated as often as one likes."""
    return nn.Sequential(
        nn.Linear(2, width),
        nn.Tanh(),
        nn.Linear(width, width),
        nn.Tanh(),
        nn.Linear(width, width),
        nn.Tanh(),
        nn.Linear(width, 1),
    )


def value(model: nn.Module, x: ut.Tensor, t: ut.Tensor) -> ut.Tensor:
    """U at points, each between -1 and 1 for the network."""
    return model(ut.stack([x / HALF, 2 * t / TIME - 1], dim=1))[:, 0]


def residual(model: nn.Module, x: ut.Tensor, t: ut.Tensor) -> ut.Tensor:
    """By how much the equation is missed at points."""
    x, t = x.requires_grad_(), t.requires_grad_()
    u = value(model, x, t)
    u_x, u_t = ut.autograd.grad(u.sum(), (x, t), create_graph=True)
    (u_xx,) = ut.autograd.grad(u_x.sum(), x, create_graph=True)
    (u_xxx,) = ut.autograd.grad(u_xx.sum(), x, create_graph=True)
    return u_t + 6 * u * u_x + u_xxx


def error(model: nn.Module) -> float:
    """The distance from the exact wave at the last time, relative to the wave."""
    x = ut.linspace(-HALF, HALF, 201)
    t = ut.full_like(x, TIME)
    with ut.no_grad():
        exact = soliton(x, t)
        return ((value(model, x, t) - exact).norm() / exact.norm()).item()


def main() -> None:
    """Train the network on the equation, and compare it with the exact wave."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1500, help="default: %(default)s")
    parser.add_argument("--points", type=int, default=512, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    parser.add_argument("--output", type=Path, default=Path("soliton.png"))
    options = parser.parse_args()
    ut.manual_seed(options.seed)
    model = network()
    first = error(model)
    optimiser = ut.optim.Adam(model.parameters(), lr=4e-3)
    schedule = ut.optim.lr_scheduler.CosineAnnealingLR(optimiser, options.steps, 1e-5)
    start = ut.linspace(-HALF, HALF, 128)
    wave, zero = soliton(start, ut.zeros(128)), ut.zeros(128)
    ends, still = ut.tensor([-HALF, HALF]).repeat(32), ut.zeros(64)
    for _ in (progress := tqdm(range(options.steps), unit="step")):
        x = (2 * ut.rand(options.points) - 1) * HALF
        t = ut.rand(options.points) * TIME
        physics = (residual(model, x, t) ** 2).mean()
        begin = ((value(model, start, zero) - wave) ** 2).mean()
        border = ((value(model, ends, ut.rand(64) * TIME) - still) ** 2).mean()
        loss = physics + 20 * begin + 5 * border
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        progress.set_postfix(loss=f"{loss.item():.2e}")
    print(f"relative error of the wave at t = {TIME}: {first:.3f} at first, {error(model):.3f} now")
    figure = Figure(figsize=(9, 3.5), layout="constrained")
    axes = figure.subplots()
    x = ut.linspace(-HALF, HALF, 201)
    for time, color in ((0.0, "#6c757d"), (TIME / 2, "#2a6f97"), (TIME, "#e07a1f")):
        t = ut.full_like(x, time)
        axes.plot(x.numpy(), soliton(x, t).numpy(), color=color, lw=4, alpha=0.3)
        with ut.no_grad():
            axes.plot(x.numpy(), value(model, x, t).numpy(), color=color, label=f"t = {time:.2f}")
    axes.set(xlabel="x", title="the network (thin) and the exact wave (broad)")
    axes.legend(frameon=False)
    figure.savefig(options.output, dpi=110)
    print(f"the picture is in {options.output}")


if __name__ == "__main__":
    main()
