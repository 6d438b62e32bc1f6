"""What a trained model tells of the test series, and how good that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..models.saved import Description
from ..models.training import scores_of
from ..nn import Module
from ..timeseries import published
from .activation_maps import ActivationMaps
from .jobs import Job, confusion_of, errors_of


@dataclass(frozen=True)
class Findings:
    """Figures, a sentence on them, and what is drawn."""

    description: Description
    results: dict[str, Any]
    sentence: str
    confusion: NDArray[np.int64] | None = None
    maps: ActivationMaps | None = None
    told: NDArray[np.float64] | None = None  # of a regression (number), of a forecast (…, horizon)
    truth: NDArray[np.float64] | None = None
    seen: NDArray[np.float64] | None = None  # the windows of a forecast
    names: tuple[str, ...] = ()  # of the series


def findings_of(job: Job, model: Module, device: Any) -> Findings:
    """Let the model tell what it thinks of the test series."""
    *inputs, targets = job.test.tensors
    outputs = scores_of(model, *inputs, device=device)
    about = job.description
    names = job.tested.ids or tuple(map(str, range(len(job.tested))))
    if about.task == "classification":
        answers, truth = outputs.argmax(dim=1).numpy(), targets.numpy()
        hits = int((answers == truth).sum())
        results: dict[str, Any] = {"test_accuracy": hits / len(truth)}
        said = f"test accuracy {100 * hits / len(truth):.1f} % ({hits} of {len(truth)})"
        theirs = published(about.model, about.data)
        if theirs is not None:
            results["published_accuracy"] = theirs[0] / 100
            said += f", published {theirs[0]:.1f} ± {theirs[1]:.1f}"
        return Findings(
            about,
            results,
            said,
            confusion=confusion_of(truth, answers, len(about.classes)),
            maps=ActivationMaps.of(model, job.tested, answers, about, device),
            names=names,
        )
    unit = f" {about.unit}" if about.unit else ""
    if about.task == "regression":
        told, truth = about.numbers(outputs), job.tested.targets()
        errors = errors_of(told, truth)
        results = {f"test_{name}": value for name, value in errors.items()}
        beside = float(np.abs(about.centre - truth).mean())
        results["mean_mae"] = beside
        said = f"test {_figures(errors, unit)}; the mean of the training targets: MAE {beside:.4g}"
        return Findings(about, results, said + unit, told=told, truth=truth, names=names)
    assert job.windows is not None
    told = job.windows.restored(outputs.numpy())
    truth = job.windows.restored(targets.numpy())
    seen = job.windows.restored(job.windows.values)
    errors = errors_of(told, truth)
    results = {f"test_{name}": value for name, value in errors.items()}
    beside = float(np.abs(seen[:, :, -1:] - truth).mean())
    results["naive_mae"] = beside
    said = f"test {_figures(errors, unit)}; the last value repeated: MAE {beside:.4g}{unit}"
    return Findings(about, results, said, told=told, truth=truth, seen=seen, names=names)


def _figures(errors: dict[str, float], unit: str) -> str:
    words = f"MAE {errors['mae']:.4g}{unit}, RMSE {errors['rmse']:.4g}{unit}"
    return words + (f", R² {errors['r2']:.3f}" if "r2" in errors else "")
