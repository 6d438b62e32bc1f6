"""FCN and ResNet on sets of the UCR archive: accuracy beside the published, epochs beside torch's.

    python benchmarks/ucr.py [--datasets NAME...] [--models NAME...] [--epochs N] [--seeds N]
    python benchmarks/ucr.py --race-only [--threads N] [--isa avx2]

As in H. Ismail Fawaz et al., "Deep learning for time series classification: a review" (2019): Adam
with 1e-3, batches of min(n/10, 16), the learning rate halved after 50 epochs without progress of
the training loss down to 1e-4, the model of the epoch with the smallest training loss. Two things
are not as there. They train 2000 epochs, this fewer (`--epochs`). And the batch norms of the best
model have the statistics of the training series, not running means, which after fewer epochs lag
behind the weights (Note [statistics] in src/undertow/models/training.py).

Then the same training is raced against torch: equal weights, series and order, whole epochs in
turns, the best of each. With `--json FILE` everything is kept in that file, and a run that was
stopped goes on where it was, to the same numbers; without it nothing is kept.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from _isa import limit, options
from _race import WrongResult, clock_for, cpu_name, header, mark

import undertow as ut
from undertow.models import MODELS
from undertow.models.classifier import EPSILON
from undertow.models.training import Training, evaluated, paper_batch_size
from undertow.timeseries import load, published

DATASETS = ("GunPoint", "ItalyPowerDemand", "OSULeaf")
RACED = ("fcn", "resnet")
BAR, AIM = 0.8, 0.6  # of the time of torch's epoch
SAVE_EVERY = 60.0  # seconds


class Kept:
    """Figures in a file, and the training under way beside it."""

    def __init__(self, path: str | None) -> None:
        self.path = Path(path) if path else None
        self.rows: dict[str, Any] = {}
        if self.path and self.path.exists():
            self.rows = json.loads(self.path.read_text())["rows"]

    def add(self, key: str, row: dict[str, Any]) -> None:
        self.rows[key] = row
        if self.path:
            new = self.path.with_name(self.path.name + ".new")
            kept = {"cpu": cpu_name(), "isa": limit(), "rows": self.rows}
            new.write_text(json.dumps(kept, indent=1))
            new.replace(self.path)

    def save(self, key: str, training: Training) -> None:
        if self.path:
            ut.save(
                {"key": key, "seconds": seconds(training), "state": training.state()}, self.part
            )

    def restore(self, key: str, training: Training) -> None:
        """Where the training of this key was stopped, if it was."""
        if self.path and self.part.exists():
            found = ut.load(self.part)
            if found["key"] == key:
                training.load_state(found["state"])
                training.history = [{"seconds": found["seconds"]}]

    @property
    def part(self) -> Path:
        assert self.path is not None
        return self.path.with_name(self.path.name + ".part.pt")


def seconds(training: Training) -> float:
    return sum(row["seconds"] for row in training.history)


def tensors(name: str) -> tuple[Any, Any]:
    """The training and the test series of a set."""
    train, test = load(name, fetch=True)
    assert test is not None
    made = []
    for part in (train.normalised(), test.normalised()):
        classes = ut.from_numpy(part.encoded(train.classes))
        made.append(ut.utils.data.TensorDataset(ut.from_numpy(part.values), classes))
    return made[0], made[1]


def new_training(model: str, train: Any, seed: int) -> Training:
    values, classes = train.tensors
    ut.manual_seed(seed)
    made = MODELS[model](values.shape[1], int(classes.max().item()) + 1)
    return Training(made, train, lr=1e-3, batch_size=paper_batch_size(len(train)), seed=seed)


# Accuracy ----------------------------------------------------------------------------------------
def accuracy(model: str, name: str, seed: int, epochs: int, kept: Kept) -> float:
    """Of the best model after `epochs`, on the test series."""
    key = f"{model} {name} seed {seed} epochs {epochs}"
    if key not in kept.rows:
        train, test = tensors(name)
        training = new_training(model, train, seed)
        kept.restore(key, training)
        saved = time.monotonic()
        while training.epochs < epochs:
            training.epoch_of_training()
            if time.monotonic() - saved > SAVE_EVERY:
                kept.save(key, training)
                saved = time.monotonic()
                print(f"  {key}: {training.epochs}, loss {training.best_loss:.2g}", file=sys.stderr)
        last = evaluated(training.model, test)[1]
        training.take_best()
        row = {
            "accuracy": evaluated(training.model, test)[1],
            "last_accuracy": last,
            "best_epoch": training.best_epoch,
            "training_loss": training.best_loss,
            "seconds": seconds(training),
        }
        kept.add(key, row)
    return float(kept.rows[key]["accuracy"])


def table(asked: argparse.Namespace, kept: Kept) -> None:
    print(f"\naccuracy in per cent: {asked.epochs} epochs, {asked.seeds} seeds; published: 2000, 5")
    print(f"{'':8}{'':18}{'ours':>14}{'published':>14}{'difference':>12}   each")
    for model in asked.models:
        for name in asked.datasets:
            each = [100 * accuracy(model, name, s, asked.epochs, kept) for s in range(asked.seeds)]
            mean = statistics.mean(each)
            spread = statistics.pstdev(each)
            theirs = published(model, name)
            beside = (
                f"{theirs[0]:8.1f} ± {theirs[1]:.1f}{mean - theirs[0]:+12.1f}" if theirs else ""
            )
            runs = " ".join(f"{a:.1f}" for a in each)
            print(f"{model:8}{name:18}{mean:8.1f} ± {spread:.1f}{beside:26}   {runs}", flush=True)


# The race ----------------------------------------------------------------------------------------
def torch_model(torch: Any, model: str, channels: int, classes: int) -> Any:
    """The same network in torch, under the same names."""
    nn = torch.nn

    def chain(inputs: int, *layers: tuple[int, int]) -> list[Any]:
        made = []
        for outputs, kernel in layers:
            made += [nn.Conv1d(inputs, outputs, kernel, padding="same")]
            made += [nn.BatchNorm1d(outputs, eps=EPSILON), nn.ReLU()]
            inputs = outputs
        return made

    class Block(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self, inputs: int, outputs: int) -> None:
            super().__init__()
            self.body = nn.Sequential(*chain(inputs, (outputs, 8), (outputs, 5), (outputs, 3))[:-1])
            if inputs == outputs:
                self.shortcut = nn.BatchNorm1d(outputs, eps=EPSILON)
            else:
                self.shortcut = nn.Sequential(*chain(inputs, (outputs, 1))[:-1])

        def forward(self, x: Any) -> Any:
            return torch.relu(self.body(x) + self.shortcut(x))

    class Net(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(128, classes)
            if model == "fcn":
                self.body = nn.Sequential(*chain(channels, (128, 8), (256, 5), (128, 3)))
            else:
                self.body = nn.Sequential(Block(channels, 64), Block(64, 128), Block(128, 128))

        def forward(self, x: Any) -> Any:
            return self.head(self.body(x).mean(dim=2))

    return Net()


def epoch(lib: Any, model: Any, optimizer: Any, data: Any, order: list[list[int]]) -> list[float]:
    """One epoch in either library, line for line the same; the loss of each batch."""
    values, classes = data
    losses = []
    for batch in order:
        chosen = lib.tensor(batch)
        optimizer.zero_grad()
        loss = lib.nn.functional.cross_entropy(model(values[chosen]), classes[chosen])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def raced(torch: Any, model: str, name: str, turns: int, threads: int) -> dict[str, Any]:
    """The best seconds of an epoch of each library, after one that is not timed."""
    train, _ = tensors(name)
    ours = new_training(model, train, 0).model
    theirs = torch_model(torch, model, ours.in_channels, ours.num_classes)
    theirs.load_state_dict({k: torch.from_numpy(v.numpy()) for k, v in ours.state_dict().items()})
    both = {
        "undertow": (ut, ours, ut.optim.Adam(ours.parameters(), lr=1e-3), train.tensors),
        "torch": (
            torch,
            theirs,
            torch.optim.Adam(theirs.parameters(), lr=1e-3),
            tuple(torch.from_numpy(t.numpy()) for t in train.tensors),
        ),
    }
    clock = clock_for(threads)
    best = dict.fromkeys(both, float("inf"))
    size = paper_batch_size(len(train))
    for turn in range(turns + 1):
        order = ut.randperm(len(train)).tolist()
        batches = [order[i : i + size] for i in range(0, len(order), size)]
        losses = {}
        for lib, run in both.items():
            time.sleep(0.03)  # until the other's threads have gone to sleep
            begin = clock()
            losses[lib] = epoch(*run, batches)
            if turn:
                best[lib] = min(best[lib], clock() - begin)
        mine, other = losses["undertow"][0], losses["torch"][0]
        if not turn and abs(mine - other) > 1e-4 * abs(other):
            raise WrongResult(f"the loss of the first batch is {mine}, torch's {other}")
    ratio = best["undertow"] / best["torch"]
    return {**best, "ratio": ratio, "batch": size, "mark": mark(ratio, BAR, AIM)}


def race(asked: argparse.Namespace, kept: Kept) -> None:
    try:
        import torch
    except ModuleNotFoundError:
        print("\nno race: torch is not installed")
        return
    torch.set_num_threads(asked.threads)
    warnings.filterwarnings("ignore", message="Using padding='same'")
    print()
    header(torch, threads=asked.threads)
    print(f"{'seconds per epoch':26}{'batch':>6}{'undertow':>10}{'torch':>10}{'ratio':>8}")
    for model in asked.models:
        for name in asked.datasets:
            if model in RACED:
                row = raced(torch, model, name, asked.turns, asked.threads)
                kept.add(f"race {model} {name} threads {asked.threads} {limit()}".strip(), row)
                times = f"{row['undertow']:10.3f}{row['torch']:10.3f}{row['ratio']:8.2f}"
                print(f"{model:8}{name:18}{row['batch']:6}{times}  {row['mark']}", flush=True)


def main() -> None:
    parser = options(__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--datasets", nargs="+", default=list(DATASETS), metavar="NAME", help="of the archive")
    add("--models", nargs="+", choices=MODELS, default=list(RACED))
    add("--epochs", type=int, default=300, help="%(default)s; theirs are 2000")
    add("--seeds", type=int, default=3, help="trainings of each (%(default)s)")
    add("--race-only", action="store_true", help="no accuracy, only the race")
    add("--no-race", action="store_true", help="no race, only the accuracy")
    add("--turns", type=int, default=5, help="timed epochs of each library (%(default)s)")
    add("--threads", type=int, default=2, metavar="N", help="of each library (%(default)s)")
    add("--json", metavar="FILE", help="keep the figures there, and go on from it")
    asked = parser.parse_args()
    ut.set_num_threads(asked.threads)
    kept = Kept(asked.json)
    if not asked.no_race:
        race(asked, kept)
    if not asked.race_only:
        table(asked, kept)


if __name__ == "__main__":
    main()
