"""The pictures of a training. Needs matplotlib, which the extra `plot` brings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray

from .activation_maps import ActivationMaps

BLUE, ORANGE, RED, GREY = "#2a6f97", "#e07a1f", "#c1121f", "#6c757d"
_SHOWN = 30  # classes whose labels and numbers can be read


def learning_curve(history: Sequence[dict[str, float]]) -> Figure:
    """Loss and accuracy by epoch, of the training and of the test series."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    losses, accuracies = figure.subplots(1, 2)
    _curves(losses, history, "loss", 1)
    _curves(accuracies, history, "accuracy", 100)
    losses.set(title="Cross-entropy", xlabel="epoch", yscale="log")
    accuracies.set(title="Accuracy, %", xlabel="epoch")
    accuracies.set_ylim(top=101)
    return figure


def _curves(axes: Any, history: Sequence[dict[str, float]], name: str, scale: float) -> None:
    for key, label, color in ((name, "training", BLUE), (f"test_{name}", "test", ORANGE)):
        points = [(row["epoch"], scale * row[key]) for row in history if key in row]
        if points:
            marker = "o" if len(points) == 1 else ""  # a line of one point cannot be seen
            axes.plot(*zip(*points, strict=True), color=color, lw=1.5, marker=marker, label=label)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)


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
    limit = max(float(np.abs(found.maps).max()), 1e-12)
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
    points = np.stack([np.arange(len(series)), series], axis=1)
    pieces = np.stack([points[:-1], points[1:]], axis=1)
    lines = LineCollection(list(pieces), cmap="coolwarm", clim=(-limit, limit), linewidths=2)
    lines.set_array((weight[:-1] + weight[1:]) / 2)
    axes.add_collection(lines)
    axes.autoscale_view()
    return lines
