"""A WaveNet-style network of dilated causal convolutions forecasts a chaotic series.

    python examples/forecast.py --steps 400 --output forecast.png

The series is the Mackey-Glass equation, x' = 0.2 x(t-17) / (1 + x(t-17)^10) - 0.1 x(t). The
network sees the past and gives the next value; fed with its own answers it goes on alone. It is
compared with the forecast that nothing changes.
"""

import argparse
from pathlib import Path

from matplotlib.figure import Figure
from tqdm import tqdm

import undertow as ut
import undertow.nn.functional as F
from undertow import nn

PAST, AHEAD = 256, 100  # values that a training piece has, and that are forecast alone


class Layer(nn.Module):
    """A gated convolution that sees only the past, with a way around it."""

    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.reach = dilation
        self.conv = nn.Conv1d(width, 2 * width, 2, dilation=dilation)
        self.mix = nn.Conv1d(width, width, 1)

    def forward(self, x: ut.Tensor) -> ut.Tensor:
        """The input, and what the layer found in it."""
        signal, gate = self.conv(F.pad(x, (self.reach, 0))).chunk(2, dim=1)
        return x + self.mix(signal.tanh() * gate.sigmoid())


def network(width: int = 24, depth: int = 8) -> nn.Module:
    """Layers that reach 1, 2, 4, … values back."""
    layers = [Layer(width, 2**i) for i in range(depth)]
    return nn.Sequential(nn.Conv1d(1, width, 1), *layers, nn.ReLU(), nn.Conv1d(width, 1, 1))


def mackey_glass(count: int, delay: int = 17, inside: int = 10) -> ut.Tensor:
    """The series by small Euler steps, one value per unit of time, with mean 0 and deviation 1."""
    step, values = 1 / inside, [1.2] * (delay * inside + 1)
    for _ in range((count + 200) * inside):
        late, now = values[-delay * inside - 1], values[-1]
        values.append(now + step * (0.2 * late / (1 + late**10) - 0.1 * now))
    series = ut.tensor(values[::inside][-count:])
    return (series - series.mean()) / series.std()


def train(model: nn.Module, series: ut.Tensor, steps: int) -> float:
    """Teach the network the next value of each piece; the last loss."""
    optimiser = ut.optim.Adam(model.parameters(), lr=3e-3)
    schedule = ut.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in (progress := tqdm(range(steps), unit="step")):
        starts = ut.randint(len(series) - PAST - 1, (16, 1))
        pieces = series[starts + ut.arange(PAST + 1)][:, None]
        loss = F.mse_loss(model(pieces[..., :-1]), pieces[..., 1:])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        progress.set_postfix(loss=f"{loss.item():.5f}")
    return loss.item()


@ut.no_grad()
def forecast(model: nn.Module, past: ut.Tensor, ahead: int) -> ut.Tensor:
    """Go on from the past with the network's own answers."""
    values = past[None, None]
    for _ in range(ahead):
        following = model(values[..., -PAST:])[..., -1:]
        values = ut.cat([values, following], dim=-1)
    return values[0, 0, -ahead:]


def main() -> None:
    """Train, forecast and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=400, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    parser.add_argument("--output", type=Path, default=Path("forecast.png"))
    options = parser.parse_args()
    ut.manual_seed(options.seed)
    series = mackey_glass(3000)
    known, unseen = series[:-AHEAD], series[-AHEAD:]
    model = network()
    train(model, known, options.steps)
    ahead = forecast(model, known[-PAST:], AHEAD)
    errors = {"network": ahead - unseen, "nothing changes": known[-1] - unseen}
    for name, error in errors.items():
        near, far = ((e * e).mean().sqrt().item() for e in (error[:20], error))
        print(f"{name:>16}: error {near:.3f} over 20 values, {far:.3f} over {AHEAD}")
    figure = Figure(figsize=(10, 3.5), layout="constrained")
    axes = figure.subplots()
    axes.plot(range(-PAST, 0), known[-PAST:].numpy(), color="#6c757d", label="the past")
    axes.plot(range(AHEAD), unseen.numpy(), color="#2a6f97", label="what came")
    axes.plot(range(AHEAD), ahead.numpy(), color="#e07a1f", ls="--", label="forecast")
    axes.legend(frameon=False, ncols=3)
    figure.savefig(options.output, dpi=110)
    print(f"the picture is in {options.output}")


if __name__ == "__main__":
    main()
