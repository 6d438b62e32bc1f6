"""Train a model of time series: classes, a number, or what comes next.

--data is a set of the UCR archive (GunPoint, ItalyPowerDemand, OSULeaf) or a file:
  .csv .tsv .txt  wide: one series a row; the label in the column `label`, or the first one
                  long: one moment a row, with columns id, time, value[, dimension], label
  .ts             the format of the archive; X_TEST.ts is tested with after learning from X_TRAIN.ts
  .npz            arrays X (number, [channels,] length) and y; or X_train, y_train, X_test, y_test
Series may have uneven lengths, which are padded and masked, and missing values (empty, ? or NaN),
which are filled on the line between their neighbours; both are told. Without test series, a fifth
of each class is kept apart for it.

A fifth of each class of the training series is kept apart for validation. The weights are those of
the epoch with the smallest loss of these, and after --patience epochs without a better one the
training is over. With --refit that many epochs are then learnt anew from all training series.

Ctrl-C stops the training; the same command with --resume goes on, and gives the same numbers as if
it had never been stopped. The folder --out then has
  model.safetensors    the model; undertow predict uses it
  metrics.jsonl        a line per epoch: loss and accuracy (or mae) of all parts, learning rate
  results.json         what the model reached, and the settings
  confusion.csv        its answers (columns) to the test series of each class (rows), or
  predictions.csv      what it told of the test series beside what is true
  learning_curve.png, and confusion_matrix.png and activation_maps.png, or predictions.png
  report.html          all of it on one page
  checkpoint.pt        where to go on

Examples:
  undertow train --data GunPoint --model fcn --epochs 100 --out gunpoint
  undertow train --data wear.csv --task regression --unit hours
  undertow train --data power.csv --task forecast --horizon 24
"""

from __future__ import annotations

import argparse
import math
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from ..core.generator import manual_seed
from ..errors import ArgumentError
from ..models import MODELS
from ..models.saved import save_classifier
from ..models.tasks import TASKS
from ..models.training import Training, evaluated, paper_batch_size
from .findings import findings_of
from .interrupts import stopping
from .jobs import Job, job_of
from .options import add_data_options, between, share_or_file, whole
from .run_folder import RunFolder

DEFAULTS: dict[str, Any] = {
    "test": None,
    "task": None,
    "horizon": None,
    "window": None,
    "unit": None,
    "model": "fcn",
    "epochs": 100,
    "lr": 1e-3,
    "batch_size": None,
    "seed": 0,
    "test_share": 0.2,
    "test_every": None,
    "validation": 0.2,
    "patience": 100,
    "refit": False,
    "normalise": True,
    "format": "auto",
    "label_column": None,
    "id_column": None,
    "time_column": None,
    "value_column": None,
    "dimension_column": None,
    "fetch": None,
}
MAY_CHANGE = {"epochs", "patience"}  # from one part of a training to the next
TESTS = 100  # about so often are the test series looked at, whatever the number of epochs


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What the command understands; absent is what was not said, so that --resume may know it."""
    add = command.add_argument
    absent: dict[str, Any] = {"default": argparse.SUPPRESS}
    add("--data", help="file, or name of a UCR set", **absent)
    add("--test", metavar="FILE", help="file with the test series", **absent)
    task = "what to learn (default: what the labels tell)"
    add("--task", choices=TASKS, help=task, **absent)
    add("--horizon", type=whole(1), metavar="N", help="values to forecast", **absent)
    window = "values to forecast from (default: at most 4 horizons)"
    add("--window", type=whole(2), metavar="N", help=window, **absent)
    add("--unit", help="of the numbers to learn, for tables and pictures", **absent)
    add("--model", choices=MODELS, help="default: fcn", **absent)
    add("--epochs", type=whole(1), help="times to learn from all series (default: 100)", **absent)
    add("--lr", type=between(0, 1e3), help="first learning rate (default: 0.001)", **absent)
    size = "series at once (default: a tenth of all, at most 16)"
    add("--batch-size", type=whole(1), metavar="N", help=size, **absent)
    add("--seed", type=whole(0, bits=64), help="of weights, order, parts (default: 0)", **absent)
    share = "part to keep apart where no test series are given (default: 0.2)"
    add("--test-share", type=between(0, 1), metavar="PART", help=share, **absent)
    often = "epochs between two looks at the test series (default: as many as give 100 looks)"
    add("--test-every", type=whole(1), metavar="N", help=often, **absent)
    chosen = "part of the training series, or file, to choose the weights by (default: 0.2); 0: by "
    chosen += "the training loss"
    add("--validation", type=share_or_file, metavar="PART|FILE", help=chosen, **absent)
    wait = "epochs without a better validation loss until the end (default: 100)"
    add("--patience", type=whole(1), metavar="N", help=wait, **absent)
    again = "when the best epoch is known, learn as many epochs anew from validation series, too; "
    again += "the weights are then averaged over epochs"
    add("--refit", action="store_true", help=again, **absent)
    plain = "take the series as they are, not with mean 0 and deviation 1"
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
    for name in ("data", "test", "validation"):  # --resume may come from another folder
        if isinstance(said.get(name), str) and Path(said[name]).is_file():
            said[name] = str(Path(said[name]).resolve())
    folder = RunFolder(_place(asked, said))
    settings, state = _settings(asked, folder, said)
    job = job_of(settings)
    show = _silent if asked.quiet else print
    chosen = (state or {}).get("chosen", 0)
    training = _training(job, settings, asked, refit=bool(chosen))
    settings["fingerprint"] = folder.same_series(settings.get("fingerprint"), *job.series)
    show(_about(job, training, settings))
    history: list[dict[str, float]] = []
    if state is not None:
        training.load_state(state)
        history = folder.metrics(state.get("before", 0) + training.epochs)
        training.history = history[state.get("before", 0) :]
        history = history[: state.get("before", 0)]
    elif folder.barely_begun():
        show(f"{folder.path} has a training without a checkpoint; this one begins anew")
    if state is None:
        folder.clear()  # only now, when nothing can be wrong with the data and the settings
    folder.begin([*history, *training.history])
    if not chosen:
        stopped = _train(training, job, folder, settings, asked)
        if not stopped and settings["refit"] and job.validation is not None:
            chosen, history = training.best_epoch, training.history
            training = _training(job, settings, asked, refit=True)
    if chosen:
        show(f"learning {chosen} epochs anew from all {len(job.everything)} training series")
        stopped = _train(training, job, folder, settings, asked, chosen, len(history))
    if stopped:
        print(
            f"stopped in epoch {training.epochs + 1} of {chosen or settings['epochs']}; go on by\n"
            f"  undertow train --resume --out {folder.path}",
            file=sys.stderr,
        )
        return 130
    _finish(training, job, history, chosen, settings, folder, asked, show)
    return 0


def _training(
    job: Job, settings: dict[str, Any], asked: argparse.Namespace, refit: bool
) -> Training:
    """The one that chooses an epoch, or the one that then learns from everything."""
    manual_seed(settings["seed"])
    size = settings["batch_size"] or paper_batch_size(len(job.everything))
    return Training(
        job.description.new_model(),
        job.everything if refit else job.train,
        lr=settings["lr"],
        batch_size=size,
        seed=settings["seed"],
        device=asked.device,
        workers=asked.workers,
        task=job.description.learnt(),
        validation=None if refit else job.validation,
        patience=None if refit or job.validation is None else settings["patience"],
        averaged=settings["refit"],
    )


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


def _silent(*words: object) -> None:
    pass


def _about(job: Job, training: Training, settings: dict[str, Any]) -> str:
    parameters = sum(p.numel() for p in training.model.parameters())
    lines = [
        job.about,
        *job.notes,
        f"{MODELS[settings['model']].__name__}: {parameters:,} parameters, "
        f"Adam {settings['lr']:g}, batches of {training.batch_size}, seed {settings['seed']}",
    ]
    return "\n".join(lines)


def _train(
    training: Training,
    job: Job,
    folder: RunFolder,
    settings: dict[str, Any],
    asked: argparse.Namespace,
    chosen: int = 0,
    before: int = 0,
) -> bool:
    """All epochs that are left, or those that were chosen; True if somebody stopped them."""
    epochs: int = chosen or settings["epochs"]
    place = {"chosen": chosen, "before": before}
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
        while training.epochs < epochs and not training.over:
            bar.set_description(f"epoch {training.epochs + 1}/{epochs}", refresh=False)
            if training.epoch_of_training(lambda: _after_batch(training, bar) or stop.asked):
                row = training.history[-1]
                if chosen:
                    row["refit"] = 1
                if training.epochs % settings["test_every"] == 0 or training.epochs == epochs:
                    loss, score = evaluated(training.model, job.test, asked.device, training.task)
                    row |= {"test_loss": loss, f"test_{training.task.metric}": score}
                folder.add_metrics(row)
                _after_epoch(training, bar)
            if stop.asked or time.monotonic() - saved >= asked.save_every:
                folder.save(settings, training.state() | place)
                saved = time.monotonic()
            if stop.asked:
                return training.epochs < epochs and not training.over
        folder.save(settings, training.state() | place)
    return False


def _after_batch(training: Training, bar: Any) -> bool:
    bar.update(training.batches_done - bar.n)
    if not training.history:  # nothing better to show yet
        score = _shown(training.task.metric, training.score)
        bar.set_postfix_str(f"loss {training.loss:.4f}, {score}", False)
    return False


def _shown(metric: str, score: float) -> str:
    return f"{metric} {score:.1%}" if metric == "accuracy" else f"{metric} {score:.4g}"


def _after_epoch(training: Training, bar: Any) -> None:
    bar.update(training.batches_done - bar.n)
    row, metric = training.history[-1], training.task.metric
    words = f"loss {row['loss']:.4f}, {_shown(metric, row[metric])}"
    for part in ("validation", "test"):
        known = [r[f"{part}_{metric}"] for r in training.history if f"{part}_{metric}" in r]
        if known:
            words += f", {part} {_shown(metric, known[-1]).removeprefix(metric + ' ')}"
    bar.set_postfix_str(words, refresh=False)


def _finish(
    training: Training,
    job: Job,
    chosen_history: list[dict[str, float]],
    chosen: int,
    settings: dict[str, Any],
    folder: RunFolder,
    asked: argparse.Namespace,
    show: Callable[[str], None],
) -> None:
    """Write the model, what it tells of the test series, and the pictures."""
    history = [*chosen_history, *training.history]
    if chosen:
        training.take_last()
        best = chosen
    else:
        training.take_best()
        best = training.best_epoch
    row = (chosen_history or training.history)[best - 1]
    found = findings_of(job, training.model, asked.device)
    results: dict[str, Any] = {
        "data": job.description.data,
        "task": job.description.task,
        "model": job.description.model,
        "epochs": len(chosen_history) or training.epochs,
        "best_epoch": best,
        "chosen_by": "validation loss" if job.validation is not None else "training loss",
        "refit": bool(chosen),
        "training_loss": row["loss"],
        **{k: v for k, v in row.items() if k.startswith("validation_")},
        "test_series": len(job.test),
        **found.results,
        "seconds": sum(row["seconds"] for row in history),
        "settings": {k: v for k, v in settings.items() if k != "fingerprint" and v is not None},
    }
    if job.description.unit:
        results["unit"] = job.description.unit
    save_classifier(training.model.to("cpu"), job.description, folder.model, results)
    command = f"undertow train {shlex.join(_command(settings))}"
    folder.write(results, found, history, command, plots=not asked.no_plots)
    part = "validation" if job.validation is not None else "training"
    again = ", learnt anew from all training series" if chosen else ""
    show(
        f"{found.sentence}; weights of epoch {best} of {results['epochs']}, chosen by the {part} "
        f"loss{again}; {results['seconds']:.1f} s of training\n"
        f"written to {folder.path}: {', '.join(folder.written())}"
    )


def _command(settings: dict[str, Any]) -> list[str]:
    """The words that repeat a training."""
    words = ["--data", str(settings["data"])]
    for name, default in DEFAULTS.items():
        value = settings.get(name, default)
        if value == default or name == "normalise":
            continue
        option = "--" + name.removesuffix("_column").replace("_", "-")
        words += [option] if value is True else [option, str(value)]
    return words if settings["normalise"] else [*words, "--no-normalise"]
