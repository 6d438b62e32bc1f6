"""A Wasserstein GAN with gradient penalty learns to make waves: second order through conv1d.

    python examples/gan.py --steps 300 --output gan.png

The critic is kept smooth by a penalty on the length of its gradient with respect to its input
(Gulrajani and others, 2017), so training it differentiates a gradient.
"""

import argparse
import math
from pathlib import Path

from matplotlib.figure import Figure
from tqdm import tqdm

import undertow as ut
from undertow import nn

LENGTH, NOISE = 64, 16


def waves(count: int) -> ut.Tensor:
    """Real ones: decaying oscillations of random frequency, phase and decay."""
    t = ut.linspace(0, 1, LENGTH)
    frequency, phase, decay = (
        low + (high - low) * ut.rand(count, 1)
        for low, high in ((3.0, 5.0), (0.0, 2 * math.pi), (0.5, 2.5))
    )
    return ((2 * math.pi * frequency * t + phase).sin() * (-decay * t).exp())[:, None]


def generator() -> nn.Module:
    """Noise to waves, by transposed convolutions."""
    return nn.Sequential(
        nn.Linear(NOISE, 64 * 8),
        nn.ReLU(),
        nn.Unflatten(1, (64, 8)),
        nn.ConvTranspose1d(64, 32, 4, 2, 1),
        nn.ReLU(),
        nn.ConvTranspose1d(32, 32, 4, 2, 1),
        nn.ReLU(),
        nn.ConvTranspose1d(32, 16, 4, 2, 1),
        nn.ReLU(),
        nn.Conv1d(16, 1, 7, padding=3),
    )


def critic() -> nn.Module:
    """Waves to one number: how real they look."""
    return nn.Sequential(
        nn.Conv1d(1, 32, 5, 2, 2),
        nn.LeakyReLU(0.2),
        nn.Conv1d(32, 64, 5, 2, 2),
        nn.LeakyReLU(0.2),
        nn.Conv1d(64, 64, 5, 2, 2),
        nn.LeakyReLU(0.2),
        nn.Flatten(),
        nn.Linear(64 * 8, 1),
    )


def penalty(critic: nn.Module, real: ut.Tensor, made: ut.Tensor) -> ut.Tensor:
    """How far the critic's slope between real and made waves is from 1."""
    share = ut.rand(len(real), 1, 1)
    between = (share * real + (1 - share) * made).requires_grad_()
    (slope,) = ut.autograd.grad(critic(between).sum(), between, create_graph=True)
    length = (slope.flatten(1) ** 2).sum(1).add(1e-12).sqrt()
    return ((length - 1) ** 2).mean()


def spectrum(x: ut.Tensor) -> ut.Tensor:
    """The mean strength of each frequency, by which made waves can be compared with real ones."""
    t = ut.arange(LENGTH) * (2 * math.pi / LENGTH)
    angle = ut.arange(12)[:, None] * t
    flat = x.flatten(1)
    power = (flat @ angle.cos().T) ** 2 + (flat @ angle.sin().T) ** 2
    return power.mean(0) / power.mean(0).sum()


def main() -> None:
    """Train both networks against each other, and draw what they make."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300, help="of the generator")
    parser.add_argument("--critic", type=int, default=4, help="steps of the critic for each")
    parser.add_argument("--batch", type=int, default=32, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    parser.add_argument("--output", type=Path, default=Path("gan.png"), help="picture to write")
    options = parser.parse_args()
    ut.manual_seed(options.seed)
    make, judge = generator(), critic()
    betas = (0.5, 0.9)
    of_make = ut.optim.Adam(make.parameters(), lr=1e-3, betas=betas)
    of_judge = ut.optim.Adam(judge.parameters(), lr=1e-3, betas=betas)
    size = options.batch
    first = (spectrum(make(ut.randn(256, NOISE)).detach()) - spectrum(waves(256))).abs().sum()
    for _ in (progress := tqdm(range(options.steps), unit="step")):
        for _ in range(options.critic):
            real = waves(size)
            with ut.no_grad():
                made = make(ut.randn(size, NOISE))
            distance = judge(real).mean() - judge(made).mean()
            loss = 10 * penalty(judge, real, made) - distance
            of_judge.zero_grad()
            loss.backward()
            of_judge.step()
        of_make.zero_grad()
        (-judge(make(ut.randn(size, NOISE))).mean()).backward()
        of_make.step()
        progress.set_postfix(distance=f"{distance.item():.3f}")
    with ut.no_grad():
        made = make(ut.randn(256, NOISE))
    last = (spectrum(made) - spectrum(waves(256))).abs().sum()
    print(
        f"difference of spectra, made and real: {first.item():.3f} at first, {last.item():.3f} now"
    )
    figure = Figure(figsize=(9, 4), layout="constrained")
    for row, (name, some) in enumerate((("real", waves(6)), ("made", made[:6]))):
        for column in range(6):
            axes = figure.add_subplot(2, 6, 6 * row + column + 1)
            axes.plot(some[column, 0].numpy(), color=("#2a6f97", "#e07a1f")[row])
            axes.set(xticks=[], yticks=[], ylim=(-1.3, 1.3), title=name if not column else "")
    figure.savefig(options.output, dpi=110)
    print(f"the picture is in {options.output}")


if __name__ == "__main__":
    main()
