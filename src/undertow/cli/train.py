"""Train a classifier of time series.

--data is a set of the UCR archive (GunPoint, ItalyPowerDemand, OSULeaf ...: fetched when it is
first asked for) or a file:
  .csv .tsv .txt  one series a row; the label in the column `label`, or the first one
  .ts             the format of the archive; X_TEST.ts is tested with after learning from X_TRAIN.ts
  .npz            arrays X (number, [channels,] length) and y; or X_train, y_train, X_test, y_test
Without test series, a fifth of each class is kept apart for it.

Ctrl-C stops the training; the same command with --resume goes on, and gives the same numbers as if
it had never been stopped. The folder --out then has
  model.safetensors    the model with the smallest training loss of all epochs; undertow predict
  metrics.jsonl        a line per epoch: loss, accuracy, learning rate, test loss and accuracy
  results.json         what the best model reached
  confusion.csv        its answers (columns) to the test series of each class (rows)
  learning_curve.png, confusion_matrix.png, activation_maps.png
  checkpoint.pt        where to go on

example: undertow train --data GunPoint --model fcn --epochs 100 --out gunpoint
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from ..core.generator import manual_seed
from ..core.register import FUNCTIONS
from ..errors import ArgumentError
from ..models import MODELS
from ..models.saved import Description, save_classifier
from ..models.training import Training, evaluated, paper_batch_size, scores_of
from ..timeseries import TimeSeries, load, published
from ..utils.data import TensorDataset
from .activation_maps import ActivationMaps
from .interrupts import stopping
from .options import add_data_options, between, whole
from .run_folder import RunFolder

_from_numpy = FUNCTIONS["from_numpy"]
DEFAULTS: dict[str, Any] = {
    "test": None,
    "model": "fcn",
    "epochs": 100,
    "lr": 1e-3,
    "batch_size": None,
    "seed": 0,
    "test_share": 0.2,
    "test_every": None,
    "normalise": True,
    "label_column": None,
}
MAY_CHANGE = {"epochs"}  # from one part of a training to the next
TESTS = 100  # about so often are the test series looked at, whatever the number of epochs


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What the command understands; absent is what was not said, so that --resume may know it."""
    add = command.add_argument
    absent: dict[str, Any] = {"default": argparse.SUPPRESS}
    add("--data", help="file, or name of a UCR set", **absent)
    add("--test", metavar="FILE", help="file with the test series", **absent)
    add("--model", choices=MODELS, help="default: fcn", **absent)
    add("--epochs", type=whole(1), help="times to learn from all series (default: 100)", **absent)
    add("--lr", type=between(0, 1e3), help="first learning rate (default: 0.001)", **absent)
    size = "series at once (default: a tenth of all, at most 16)"
    add("--batch-size", type=whole(1), metavar="N", help=size, **absent)
    add("--seed", type=whole(0, bits=64), help="of weights and order (default: 0)", **absent)
    share = "part to keep apart where no test series are given (default: 0.2)"
    add("--test-share", type=between(0, 1), metavar="PART", help=share, **absent)
    often = "epochs between two looks at the test series (default: as many as give 100 looks)"
    add("--test-every", type=whole(1), metavar="N", help=often, **absent)
    plain = "take the series as they are, not each with mean 0 and deviation 1"
    add("--no-normalise", dest="normalise", action="store_false", help=plain, **absent)
    add("--workers", type=whole(0), default=0, metavar="N", help="processes that prepare batches")
    add("--out", type=Path, metavar="FOLDER", help="default: runs/DATA-MODEL")
    add("--resume", action="store_true", help="go on with the training in --out")
    add("--overwrite", action="store_true", help="replace a training in --out")
    save = "seconds between two checkpoints, beside those at a stop and at the end (default: 30)"
    add("--save-every", type=whole(0), default=30, metavar="SECONDS", help=save)
    add("--no-plots", action="store_true", help="draw no pictures")
    add_data_options(command)


def run(asked: argparse.Namespace) -> int:
    """Train, or go on training, and write what came out."""
    said = {k: v for k, v in vars(asked).items() if k in {"data", *DEFAULTS} and v is not None}
    for name in ("data", "test"):  # --resume may come from another folder
        if name in said and Path(said[name]).is_file():
            said[name] = str(Path(said[name]).resolve())
    folder = RunFolder(_place(asked, said))
    settings, state = _settings(asked, folder, said)
    train, test = _series(settings)
    description = Description(
        model=settings["model"],
        channels=train.channels,
        length=train.length,
        classes=train.classes,
        normalise=settings["normalise"],
        data=train.name,
    )
    show = _silent if asked.quiet else print
    manual_seed(settings["seed"])
    training = Training(
        description.new_model(),
        _tensors(train, description),
        lr=settings["lr"],
        batch_size=settings["batch_size"] or paper_batch_size(len(train)),
        seed=settings["seed"],
        device=asked.device,
        workers=asked.workers,
    )
    settings["fingerprint"] = folder.same_series(settings.get("fingerprint"), train, test)
    show(_about(train, test, training, settings))
    if state is not None:
        training.load_state(state)
        training.history = folder.metrics(training.epochs)
    elif folder.barely_begun():
        show(f"{folder.path} has a training without a checkpoint; this one begins anew")
    if state is None:
        folder.clear()  # only now, when nothing can be wrong with the data and the settings
    folder.begin(training.history)
    stopped = _train(training, _tensors(test, description), folder, settings, asked)
    if stopped:
        print(
            f"stopped in epoch {training.epochs + 1} of {settings['epochs']}; go on by\n"
            f"  undertow train --resume --out {folder.path}",
            file=sys.stderr,
        )
        return 130
    _finish(training, test, description, folder, asked, show)
    return 0


def _place(asked: argparse.Namespace, said: dict[str, Any]) -> Path:
    if asked.out is not None:
        return Path(asked.out)
    if "data" not in said:
        raise ArgumentError("[train] --data is needed: a file, or the name of a UCR set")
    name = Path(said["data"]).stem.removesuffix("_TRAIN")
    return Path("runs") / f"{name}-{said.get('model', DEFAULTS['model'])}"


def _settings(
    asked: argparse.Namespace, folder: RunFolder, said: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """How to train: as was said, or as the run to go on with; and where that one has come to."""
    if not asked.resume:
        if "data" not in said:
            raise ArgumentError("[train] --data is needed: a file, or the name of a UCR set")
        folder.check_free(asked.overwrite)
        settings = {**DEFAULTS, **said}
        settings["test_every"] = settings["test_every"] or max(1, settings["epochs"] // TESTS)
        return settings, None
    settings, state = folder.checkpoint()
    for name, value in said.items():
        if name not in MAY_CHANGE and settings.get(name) != value:
            option = "--" + name.replace("_", "-")
            raise ArgumentError(
                f"[train] {option} is {value!r}, but {folder.path} was begun with "
                f"{settings.get(name)!r}; leave it out to go on, or begin with another --out"
            )
    if said.get("epochs", math.inf) < state.get("epochs", 0):
        raise ArgumentError(
            f"[train] --epochs is {said['epochs']}, but {folder.path} has come to "
            f"{state['epochs']} already; ask for more, or begin with another --out"
        )
    return {**settings, **{k: v for k, v in said.items() if k in MAY_CHANGE}}, state


def _series(settings: dict[str, Any]) -> tuple[TimeSeries, TimeSeries]:
    """What to learn from and what to test with."""
    train, test = load(settings["data"], settings["test"], label_column=settings["label_column"])
    if len(train.classes) < 2:
        raise ArgumentError(
            f"[{train.name}] all series have the label {train.classes[0]!r}; a classifier needs two"
        )
    if test is None:
        train, test = train.split(settings["test_share"], settings["seed"])
        if not len(test):
            raise ArgumentError(
                f"[{train.name}] every class has one series only, and a classifier is tested with "
                "others: add series, or name a file of them by --test"
            )
    if settings["normalise"]:
        train, test = train.normalised(), test.normalised()
    return train, test


def _tensors(series: TimeSeries, description: Description) -> TensorDataset:
    return TensorDataset(
        _from_numpy(series.values), _from_numpy(series.encoded(description.classes))
    )


def _silent(*words: object) -> None:
    pass


def _about(
    train: TimeSeries, test: TimeSeries, training: Training, settings: dict[str, Any]
) -> str:
    parameters = sum(p.numel() for p in training.model.parameters())
    channels = "1 channel" if train.channels == 1 else f"{train.channels} channels"
    return (
        f"{train.name}: {len(train)} series of length {train.length}, {channels}, "
        f"{len(train.classes)} classes; {len(test)} others to test with\n"
        f"{type(training.model).__name__}: {parameters:,} parameters, Adam {settings['lr']:g}, "
        f"batches of {training.batch_size}, seed {settings['seed']}"
    )


def _train(
    training: Training,
    test: TensorDataset,
    folder: RunFolder,
    settings: dict[str, Any],
    asked: argparse.Namespace,
) -> bool:
    """All epochs that are left; True if somebody stopped them."""
    epochs: int = settings["epochs"]
    bar = tqdm(
        total=epochs * training.batches,
        initial=training.batches_done,
        unit="batch",
        disable=asked.quiet,
        dynamic_ncols=True,
        mininterval=0.1 if sys.stderr.isatty() else 10.0,  # seconds: a log file needs few lines
    )
    saved = time.monotonic()
    with bar, stopping() as stop:
        while training.epochs < epochs:
            bar.set_description(f"epoch {training.epochs + 1}/{epochs}", refresh=False)
            if training.epoch_of_training(lambda: _after_batch(training, bar) or stop.asked):
                row = training.history[-1]
                if training.epochs % settings["test_every"] == 0 or training.epochs == epochs:
                    loss, accuracy = evaluated(training.model, test, asked.device)
                    row |= {"test_loss": loss, "test_accuracy": accuracy}
                folder.add_metrics(row)
                _after_epoch(training, bar)
            if stop.asked or time.monotonic() - saved >= asked.save_every:
                folder.save(settings, training.state())
                saved = time.monotonic()
            if stop.asked:
                return training.epochs < epochs
        folder.save(settings, training.state())
    return False


def _after_batch(training: Training, bar: Any) -> bool:
    bar.update(training.batches_done - bar.n)
    if not training.history:  # nothing better to show yet
        bar.set_postfix_str(f"loss {training.loss:.4f}, accuracy {training.accuracy:.1%}", False)
    return False


def _after_epoch(training: Training, bar: Any) -> None:
    bar.update(training.batches_done - bar.n)
    row = training.history[-1]
    words = f"loss {row['loss']:.4f}, accuracy {row['accuracy']:.1%}"
    tested = [r["test_accuracy"] for r in training.history if "test_accuracy" in r]
    bar.set_postfix_str(words + (f", test {tested[-1]:.1%}" if tested else ""), refresh=False)


def _finish(
    training: Training,
    test: TimeSeries,
    description: Description,
    folder: RunFolder,
    asked: argparse.Namespace,
    show: Callable[[str], None],
) -> None:
    """Write the best model, what it answers to the test series, and the pictures."""
    training.take_best()
    model, classes = training.model, description.classes
    answers = scores_of(model, _from_numpy(test.values), asked.device).argmax(dim=1).numpy()
    truth = test.encoded(classes)
    confusion = np.zeros((len(classes), len(classes)), np.int64)
    np.add.at(confusion, (truth, answers), 1)
    hits = int((answers == truth).sum())
    results: dict[str, Any] = {
        "data": description.data,
        "model": description.model,
        "epochs": training.epochs,
        "best_epoch": training.best_epoch,
        "training_loss": training.best_loss,
        "test_series": len(test),
        "test_accuracy": hits / len(test),
        "seconds": sum(row["seconds"] for row in training.history),
    }
    theirs = published(description.model, description.data)
    if theirs is not None:
        results["published_accuracy"] = theirs[0] / 100
    save_classifier(model.to("cpu"), description, folder.model, results)
    folder.write_results(results, confusion, classes)
    if not asked.no_plots:
        maps = ActivationMaps.of(model, test, answers, description)
        folder.draw(training.history, confusion, maps)
    beside = f", published {theirs[0]:.1f} ± {theirs[1]:.1f}" if theirs else ""
    show(
        f"test accuracy {100 * hits / len(test):.1f} % ({hits} of {len(test)}){beside}; weights "
        f"of epoch {training.best_epoch} of {training.epochs}, {results['seconds']:.1f} s of "
        f"training\n"
        f"written to {folder.path}: {', '.join(folder.written())}"
    )
