"""A published table of forecasts, computed again: linear models on the transformer data ETTh1.

    python benchmarks/forecast.py --data ETTh1.csv [--horizons 96 192 336 720] [--seeds 3]

The file is ETT-small/ETTh1.csv of the repository zhouhaoyi/ETDataset on GitHub: seven quantities of
an electric transformer, each hour for two years. As in A. Zeng, M. Chen, L. Zhang and Q. Xu, "Are
transformers effective for time series forecasting?" (AAAI 2023): 12 months to learn from, 4 to
validate and 4 to test; every quantity with mean 0 and deviation 1 by the months to learn from; from
336 hours the next 96 to 720. MSE and MAE are of all quantities and of all test windows that fill
batches of 32, as there. NLinear is one linear map over time for all quantities; the last value is
taken from what goes in, and added to what comes out. Adam with 0.005, halved every epoch, batches
of 32, at most 10 epochs, of which 3 without progress of the validation error are the last. Repeat
gives the last value again and learns nothing: that it agrees says that the protocol is the same.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from _isa import options

import undertow as ut
from undertow import nn

LOOKBACK, BATCH, EPOCHS, PATIENCE, LR = 336, 32, 10, 3, 0.005
MONTH = 30 * 24
# (MSE, MAE) of table 2 of the paper.
PUBLISHED = {
    ("Repeat", 96): (1.295, 0.713),
    ("Repeat", 192): (1.325, 0.733),
    ("Repeat", 336): (1.323, 0.744),
    ("Repeat", 720): (1.339, 0.756),
    ("NLinear", 96): (0.374, 0.394),
    ("NLinear", 192): (0.408, 0.415),
    ("NLinear", 336): (0.429, 0.427),
    ("NLinear", 720): (0.440, 0.453),
}


class NLinear(nn.Module):
    """What comes next as a linear function of what was, both as differences from the last value."""

    def __init__(self, horizon: int) -> None:
        super().__init__()
        self.map = nn.Linear(LOOKBACK, horizon)

    def forward(self, x: ut.Tensor) -> ut.Tensor:
        last = x[:, :, -1:]
        return self.map(x - last) + last


def read(path: Path) -> Any:
    """The quantities as an array of shape (7, hours), normalised."""
    with path.open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    values = np.array([row[1:] for row in rows], np.float64).T
    learnt = values[:, : 12 * MONTH]
    return (values - learnt.mean(1, keepdims=True)) / learnt.std(1, keepdims=True)


def windows(values: Any, begin: int, end: int, horizon: int) -> tuple[Any, Any]:
    """All pieces of `LOOKBACK` hours between two hours, and the `horizon` hours after each."""
    part = np.ascontiguousarray(values[:, begin:end].astype(np.float32))
    seen = np.lib.stride_tricks.sliding_window_view(part, LOOKBACK + horizon, axis=1)
    seen = seen.transpose(1, 0, 2)
    return seen[:, :, :LOOKBACK], seen[:, :, LOOKBACK:]


def errors(model: Any, x: Any, y: Any) -> tuple[float, float]:
    """MSE and MAE over all windows."""
    square = size = 0.0
    with ut.no_grad():
        for i in range(0, len(x), 256):
            wrong = model(ut.tensor(x[i : i + 256])) - ut.tensor(y[i : i + 256])
            square += (wrong * wrong).sum().item()
            size += wrong.abs().sum().item()
    return square / y.size, size / y.size


def trained(parts: Any, horizon: int, seed: int) -> nn.Module:
    """A model that learnt until the validation error made no progress, with its best weights."""
    (x, y), (checked_x, checked_y) = parts
    ut.manual_seed(seed)
    order = np.random.default_rng(seed)
    model = NLinear(horizon)
    optimiser = ut.optim.Adam(model.parameters(), lr=LR)
    best, kept, waited = float("inf"), model.state_dict(), 0
    for epoch in range(EPOCHS):
        optimiser.param_groups[0]["lr"] = LR * 0.5**epoch
        turn = order.permutation(len(x))
        for i in range(0, len(x) - BATCH + 1, BATCH):
            chosen = np.sort(turn[i : i + BATCH])
            optimiser.zero_grad()
            loss = nn.functional.mse_loss(model(ut.tensor(x[chosen])), ut.tensor(y[chosen]))
            loss.backward()
            optimiser.step()
        error, _ = errors(model, checked_x, checked_y)
        if error < best:
            best, waited = error, 0
            kept = {name: value.clone() for name, value in model.state_dict().items()}
        else:
            waited += 1
            if waited == PATIENCE:
                break
    model.load_state_dict(kept)
    return model


def main() -> None:
    parser = options(__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="ETTh1.csv; without it nothing is computed")
    parser.add_argument("--horizons", type=int, nargs="+", default=[96, 192, 336, 720])
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    if asked.data is None:
        print("skipped: say --data ETTh1.csv (ETT-small of zhouhaoyi/ETDataset on GitHub)")
        return
    values = read(asked.data)
    print(f"{'model':8} {'horizon':>7}  {'MSE':>14} {'published':>9}  {'MAE':>14} {'published':>9}")
    for horizon in asked.horizons:
        train = windows(values, 0, 12 * MONTH, horizon)
        check = windows(values, 12 * MONTH - LOOKBACK, 16 * MONTH, horizon)
        x, y = windows(values, 16 * MONTH - LOOKBACK, 20 * MONTH, horizon)
        x, y = (part[: len(part) // BATCH * BATCH] for part in (x, y))
        show("Repeat", horizon, [errors(lambda x: x[:, :, -1:], x, y)])
        begun = time.process_time()
        found = [errors(trained((train, check), horizon, s), x, y) for s in range(asked.seeds)]
        show("NLinear", horizon, found, f"{(time.process_time() - begun) / asked.seeds:.0f} s each")


def show(name: str, horizon: int, found: list[tuple[float, float]], note: str = "") -> None:
    """A row: means and deviations over seeds beside what was published."""
    cells = []
    known = PUBLISHED.get((name, horizon), (float("nan"),) * 2)
    for ours, theirs in zip(zip(*found, strict=True), known, strict=True):
        spread = f" ± {statistics.stdev(ours):.3f}" if len(ours) > 1 else ""
        cells.append(f"{f'{statistics.mean(ours):.3f}{spread}':>14} {theirs:9.3f}")
    print(f"{name:8} {horizon:7}  {'  '.join(cells)}  {note}".rstrip(), flush=True)


if __name__ == "__main__":
    main()
