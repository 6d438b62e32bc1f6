"""The pictures of a training. Needs matplotlib, which the extra `plot` brings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..models.saved import Description
from .activation_maps import ActivationMaps
from .findings import Findings

BLUE, ORANGE, RED, GREY = "#2a6f97", "#e07a1f", "#c1121f", "#6c757d"
GREEN = "#4f772d"
_SHOWN = 30  # classes whose labels and numbers can be read


def of(found: Findings, history: Sequence[dict[str, float]], best: int) -> dict[str, Figure]:
    """All pictures of a training, by the names of their files."""
    drawn = {"learning_curve.png": learning_curve(history, best, found.description)}
    if found.confusion is not None and found.maps is not None:
        drawn["confusion_matrix.png"] = confusion_matrix(found.confusion, found.maps.classes)
        drawn["activation_maps.png"] = activation_maps(found.maps)
    elif found.seen is not None:
        drawn["predictions.png"] = forecasts(found)
    else:
        drawn["predictions.png"] = estimates(found)
    return drawn


def learning_curve(history: Sequence[dict[str, float]], best: int, about: Description) -> Figure:
    """Loss and accuracy (or error) by epoch, of all parts, with the epoch that was chosen."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    losses, scores = figure.subplots(1, 2)
    accuracy = about.task == "classification"
    _curves(losses, history, "loss", 1, best)
    _curves(scores, history, *(("accuracy", 100) if accuracy else ("mae", 1)), best)
    losses.set(title="Cross-entropy" if accuracy else "Squared error, scaled", xlabel="epoch")
    losses.set_yscale("log")
    unit = "deviations of the window" if about.task == "forecast" else about.unit
    error = "Mean absolute error" + (f", {unit}" if unit else "")
    scores.set(title="Accuracy, %" if accuracy else error, xlabel="epoch")
    if accuracy:
        scores.set_ylim(top=101)
    return figure


def _curves(
    axes: Any, history: Sequence[dict[str, float]], name: str, scale: float, best: int
) -> None:
    parts = ((name, "training", BLUE), (f"validation_{name}", "validation", GREEN))
    for key, label, color in (*parts, (f"test_{name}", "test", ORANGE)):
        for again, style in ((False, "-"), (True, ":")):
            rows = [row for row in history if key in row and ("refit" in row) == again]
            points = [(row["epoch"], scale * row[key]) for row in rows]
            if points:
                marker = "o" if len(points) == 1 else ""  # a line of one point cannot be seen
                told = label + (", learnt anew" if again else "")
                look = {"color": color, "ls": style, "lw": 1.5, "marker": marker}
                axes.plot(*zip(*points, strict=True), **look, label=told)
    axes.axvline(best, color=GREY, lw=1, ls="--", label=f"best epoch: {best}")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)


def estimates(found: Findings) -> Figure:
    """What a regression told of each test series against what is true."""
    assert found.told is not None
    assert found.truth is not None
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    axes.plot(found.truth, found.told, "o", color=BLUE, alpha=0.6, ms=4)
    both = np.concatenate([found.truth, found.told])
    ends = [both.min(), both.max()]
    axes.plot(ends, ends, color=GREY, lw=1)
    about = found.description
    word = (about.target or "target") + (f", {about.unit}" if about.unit else "")
    axes.set(title="Test series", xlabel=f"true {word}", ylabel=f"predicted {word}")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def forecasts(found: Findings) -> Figure:
    """The windows of some test series, what came next, and what was forecast."""
    assert found.told is not None
    assert found.truth is not None
    assert found.seen is not None
    number = min(len(found.told), 6)
    figure = Figure(figsize=(11, 0.8 + 2.1 * -(-number // 2)), layout="constrained")
    grid = figure.subplots(-(-number // 2), 2, squeeze=False)
    window, horizon = found.seen.shape[2], found.told.shape[2]
    after = np.arange(window, window + horizon)
    for i, axes in enumerate(grid.flat):
        if i >= number:
            axes.set_visible(False)
            continue
        axes.plot(np.arange(window), found.seen[i, 0], color=GREY, lw=1.2, label="seen")
        axes.plot(after, found.truth[i, 0], color=BLUE, lw=1.5, marker=".", label="true")
        axes.plot(after, found.told[i, 0], color=ORANGE, lw=1.5, marker=".", label="forecast")
        axes.set_title(f"series {_short(found.names[i])}", fontsize=10, color=GREY)
        axes.set_ylabel(found.description.unit)
        axes.spines[["top", "right"]].set_visible(False)
    grid[0, 0].legend(frameon=False)
    for axes in grid[-1]:
        axes.set_xlabel("moment")
    return figure


def confusion_matrix(confusion: NDArray[np.int64], classes: Sequence[str]) -> Figure:
    """The share of each true class (row) that got each answer (column), with the numbers in it."""
    count = len(classes)
    side = 2.6 + 0.45 * min(count, _SHOWN)
    figure = Figure(figsize=(side + 0.6, side), layout="constrained")
    axes = figure.subplots()
    share = confusion / np.maximum(confusion.sum(axis=1, keepdims=True), 1)
    image = axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(image, shrink=0.8, label="share of the true class")
    right = int(np.trace(confusion))
    axes.set(title=f"{right} of {confusion.sum()} right", xlabel="predicted", ylabel="true")
    if count <= _SHOWN:
        axes.set_xticks(range(count), [_short(c) for c in classes], rotation=90 * (count > 6))
        axes.set_yticks(range(count), [_short(c) for c in classes])
        for (i, j), number in np.ndenumerate(confusion):
            if number:
                color = "white" if share[i, j] > 0.5 else "black"
                axes.text(j, i, str(number), ha="center", va="center", color=color, fontsize=9)
    return figure


def _short(label: str) -> str:
    return label if len(label) <= 14 else f"{label[:13]}…"


def activation_maps(found: ActivationMaps) -> Figure:
    """Each series, its moments coloured by what they say for (red) or against (blue) the answer."""
    columns = 2
    rows = -(-len(found.values) // columns)
    figure = Figure(figsize=(11, 0.8 + 2.1 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True)
    limit = max(float(np.nanmax(np.abs(found.maps))), 1e-12)
    lines: LineCollection | None = None
    for i, axes in enumerate(grid.flat):
        if i >= len(found.values):
            axes.set_visible(False)
            continue
        for series in found.values[i]:
            lines = _coloured(axes, series, found.maps[i], limit)
        truth, answer = (found.classes[int(a[i])] for a in (found.truth, found.answers))
        wrong = "" if truth == answer else f", is {_short(truth)}"
        axes.set_title(f"class {_short(answer)}{wrong}", fontsize=10, color=RED if wrong else GREY)
        axes.spines[["top", "right"]].set_visible(False)
    if lines is not None:
        label = "against the answer  –  for it"
        figure.colorbar(lines, ax=grid.ravel().tolist(), label=label, shrink=0.9, aspect=40)
    for axes in grid[-1]:
        axes.set_xlabel("time")
    figure.suptitle("Class activation maps of test series")
    return figure


def _coloured(
    axes: Any, series: NDArray[np.float32], weight: NDArray[np.float32], limit: float
) -> LineCollection:
    """One line whose colour follows `weight`."""
    there = ~np.isnan(weight)
    series, weight = series[there], weight[there]
    points = np.stack([np.arange(len(series)), series], axis=1)
    pieces = np.stack([points[:-1], points[1:]], axis=1)
    lines = LineCollection(list(pieces), cmap="coolwarm", clim=(-limit, limit), linewidths=2)
    lines.set_array((weight[:-1] + weight[1:]) / 2)
    axes.add_collection(lines)
    axes.autoscale_view()
    return lines


def compared(runs: Sequence[tuple[str, Sequence[dict[str, float]], int | None]]) -> Figure:
    """Loss and accuracy (or error) of several trainings; a ring is the epoch that was chosen."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    losses, scores = figure.subplots(1, 2)
    accuracy = any("accuracy" in row for _, history, _ in runs for row in history)
    metric, scale = ("accuracy", 100) if accuracy else ("mae", 1)
    for axes, key, factor in ((losses, "loss", 1), (scores, metric, scale)):
        for number, (name, history, best) in enumerate(runs):
            color = f"C{number % 10}"
            for part, style in (("", "-"), ("validation_", "--"), ("test_", ":")):
                rows = [row for row in history if part + key in row and "refit" not in row]
                epochs = [row["epoch"] for row in rows]
                values = [factor * row[part + key] for row in rows]
                label = name if not part else None
                axes.plot(epochs, values, color=color, ls=style, lw=1.4, label=label)
                if best in epochs:
                    at = values[epochs.index(best)]
                    axes.plot([best], [at], "o", color=color, mfc="none")
        axes.set(xlabel="epoch")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    losses.set(title="Loss (– training, -- validation, ·· test)")
    if any(row.get("loss", 0) > 0 for _, history, _ in runs for row in history):
        losses.set_yscale("log")
    scores.set(title="Accuracy, %" if accuracy else "Mean absolute error")
    losses.legend(frameon=False)
    return figure
