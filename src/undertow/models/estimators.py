"""Models of time series in scikit-learn's manner, which need no scikit-learn.

Series are arrays of shape (number, length) or (number, channels, length), or lists of arrays of
uneven lengths, (length) or (channels, length) each. NaN is a missing value.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.generator import default_generator, manual_seed
from ..core.register import FUNCTIONS
from ..core.tensor import Tensor
from ..errors import ArgumentError
from ..nn import Module
from ..nn import functional as F
from ..timeseries import TimeSeries
from ..timeseries.windows import Windows, last, sliding, window_for
from ..utils.data import TensorDataset
from . import MODELS
from .saved import Description
from .training import Training, paper_batch_size, scores_of

_from_numpy = FUNCTIONS["from_numpy"]


class _Estimator:
    """What the three share: parameters, and how a model is trained."""

    _kind = ""
    _alone = False  # whether the values of one series are taken as well

    def __init__(
        self,
        model: str = "fcn",
        epochs: int = 100,
        lr: float = 1e-3,
        batch_size: int | None = None,
        validation: float = 0.2,
        patience: int = 100,
        normalise: bool = True,
        seed: int = 0,
        device: Any = None,
    ) -> None:
        self.model, self.epochs, self.lr, self.batch_size = model, epochs, lr, batch_size
        self.validation, self.patience, self.normalise = validation, patience, normalise
        self.seed, self.device = seed, device

    @classmethod
    def _names(cls) -> list[str]:
        return sorted(n for n in inspect.signature(cls.__init__).parameters if n != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **given: Any) -> Self:
        """Change parameters by name."""
        for name, value in given.items():
            if name not in self._names():
                known = ", ".join(self._names())
                raise ArgumentError(
                    f"[{type(self).__name__}] has no parameter {name!r}; there are {known}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        default = type(self)().get_params()
        given = (f"{k}={v!r}" for k, v in self.get_params().items() if v != default[k])
        return f"{type(self).__name__}({', '.join(given)})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "description_")

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks its estimators; only it calls this."""
        tags = import_module("sklearn.utils")
        return tags.Tags(
            estimator_type=self._kind or None,
            target_tags=tags.TargetTags(required=bool(self._kind)),
            classifier_tags=tags.ClassifierTags() if self._kind == "classifier" else None,
            regressor_tags=tags.RegressorTags() if self._kind == "regressor" else None,
            input_tags=tags.InputTags(two_d_array=True, three_d_array=True, allow_nan=True),
        )

    def _checked(self) -> None:
        if self.model not in MODELS:
            raise ArgumentError(
                f"[{type(self).__name__}] there is no model {self.model!r}; there are "
                f"{', '.join(MODELS)}"
            )
        if not 0 <= self.validation < 1:
            raise ArgumentError(
                f"[{type(self).__name__}] validation is a part in [0, 1), got {self.validation}"
            )

    def _series(self, X: Any, y: Any = None) -> TimeSeries:
        name = type(self).__name__
        try:
            rows = [np.asarray(row, np.float64) for row in X]
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"[{name}] series are rows of numbers: {error}") from None
        if not rows:
            raise ArgumentError(f"[{name}] there are no series")
        if not any(row.ndim for row in rows):
            if not self._alone:
                raise ArgumentError(f"[{name}] takes several series, got the values of one")
            rows = [np.stack(rows)]
        rows = [row[None] if row.ndim == 1 else row for row in rows]
        if any(row.ndim != 2 or row.shape[0] != rows[0].shape[0] for row in rows):
            raise ArgumentError(
                f"[{name}] expects series of shape (length) or (channels, length), all with as "
                f"many channels, got {sorted({row.shape for row in rows})[:4]}"
            )
        series = TimeSeries.gathered(name, rows)
        if y is None:
            return series
        labels = np.asarray(y)
        if labels.shape != (len(rows),):
            raise ArgumentError(
                f"[{name}] expects a target for each of {len(rows)} series, got y of shape "
                f"{labels.shape}"
            )
        return replace(series, labels=tuple(map(str, labels.tolist())))

    def _fit(
        self, about: Description, train: TensorDataset, validation: TensorDataset | None
    ) -> None:
        before = default_generator.get_state()
        try:
            manual_seed(self.seed)
            training = Training(
                about.new_model(),
                train,
                lr=self.lr,
                batch_size=self.batch_size or paper_batch_size(len(train)),
                seed=self.seed,
                device=self.device,
                task=about.learnt(),
                validation=validation,
                patience=None if validation is None else self.patience,
            )
            while training.epochs < self.epochs and not training.over:
                training.epoch_of_training()
            training.take_best()
        finally:  # the caller's random numbers go on as if nothing had been drawn
            default_generator.set_state(before)
        self.description_, self.model_ = about, training.model.eval()
        self.history_, self.best_epoch_ = training.history, training.best_epoch

    def _fit_labelled(self, series: TimeSeries, task: str) -> None:
        about = Description.of(series, self.model, task, self.normalise)
        train, other = series, None
        if self.validation:
            train, other = series.split(self.validation, self.seed, by_number=task == "regression")
            if not len(other):
                train, other = series, None
        self._fit(about, about.dataset(train), None if other is None else about.dataset(other))

    def _fitted(self) -> tuple[Description, Module]:
        if not hasattr(self, "description_"):
            raise ArgumentError(f"[{type(self).__name__}] call fit before predict")
        return self.description_, self.model_

    def _outputs(self, X: Any) -> Tensor:
        about, model = self._fitted()
        return scores_of(model, *about.inputs(self._series(X)), device=self.device)


class TimeSeriesClassifier(_Estimator):
    """Tells the classes of series; a part of each class chooses the epoch of the weights.

    >>> import numpy as np
    >>> from undertow.models import TimeSeriesClassifier
    >>> X = np.sin(np.array([0.3, 1.0] * 10)[:, None] * np.arange(12) + np.arange(20)[:, None])
    >>> y = np.array(["slow", "fast"] * 10)
    >>> model = TimeSeriesClassifier(epochs=4).fit(X, y)
    >>> model.predict(X).shape, model.predict_proba(X).shape, model.classes_.tolist()
    ((20,), (20, 2), ['fast', 'slow'])
    """

    _kind = "classifier"

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn from series and their classes."""
        self._checked()
        labels = np.asarray(y)
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ArgumentError(f"[{type(self).__name__}] a classifier needs two classes")
        series = self._series(X, numbers.reshape(labels.shape))
        self._fit_labelled(series, "classification")
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """The probability of every class, in the order of `classes_`."""
        found: NDArray[np.float32] = F.softmax(self._outputs(X), dim=1).numpy()
        return found

    def predict(self, X: Any) -> NDArray[Any]:
        """The most likely class of each series."""
        best = self._outputs(X).argmax(dim=1).numpy()
        told: NDArray[Any] = self.classes_[best]
        return told

    def score(self, X: Any, y: ArrayLike) -> float:
        """The share of the series whose class is found."""
        return float((self.predict(X) == np.asarray(y)).mean())


class TimeSeriesRegressor(_Estimator):
    """Tells a number of each series.

    >>> import numpy as np
    >>> from undertow.models import TimeSeriesRegressor
    >>> X = np.random.default_rng(0).normal(size=(20, 12))
    >>> TimeSeriesRegressor(epochs=2).fit(X, X.mean(axis=1)).predict(X).shape
    (20,)
    """

    _kind = "regressor"

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn from series and their numbers."""
        self._checked()
        self._fit_labelled(self._series(X, np.asarray(y, np.float64)), "regression")
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """A number for each series."""
        return self._fitted()[0].numbers(self._outputs(X))

    def score(self, X: Any, y: ArrayLike) -> float:
        """R², the share of the variance of `y` that is told."""
        truth = np.asarray(y, np.float64)
        wrong = ((self.predict(X) - truth) ** 2).sum()
        return float(1 - wrong / ((truth - truth.mean()) ** 2).sum())


class TimeSeriesForecaster(_Estimator):
    """Tells the `horizon` values that come after the end of each series.

    The last horizon of each series chooses the epoch, unless `validation` is 0. The values of one
    series, an array of shape (length), are taken as well.

    >>> import numpy as np
    >>> from undertow.models import TimeSeriesForecaster
    >>> waves = np.sin(0.5 * np.arange(40) + np.arange(3)[:, None])
    >>> TimeSeriesForecaster(horizon=4, epochs=2).fit(waves).predict(waves).shape
    (3, 1, 4)
    """

    _alone = True

    def __init__(
        self,
        horizon: int = 1,
        window: int | None = None,
        model: str = "fcn",
        epochs: int = 100,
        lr: float = 1e-3,
        batch_size: int | None = None,
        validation: float = 0.2,
        patience: int = 100,
        seed: int = 0,
        device: Any = None,
    ) -> None:
        super().__init__(model, epochs, lr, batch_size, validation, patience, True, seed, device)
        self.horizon, self.window = horizon, window

    def fit(self, X: Any, y: None = None) -> Self:
        """Learn from series; what follows is in themselves."""
        self._checked()
        series, horizon = self._series(X), self.horizon
        apart = int(self.validation != 0)
        window = window_for(series, horizon, self.window, apart)
        about = replace(
            Description.of(series, self.model, "forecast", True), window=window, horizon=horizon
        )
        other = _windows(last(series, window, horizon)) if apart else None
        self._fit(about, _windows(sliding(series, window, horizon, apart)), other)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """What comes next, of shape (number, channels, horizon)."""
        about, model = self._fitted()
        series = self._series(X)
        if int(series.ends.min()) < about.window or series.channels != about.channels:
            raise ArgumentError(
                f"[{type(self).__name__}] needs series of {about.channels} channels and "
                f"{about.window} values or more"
            )
        windows = Windows.of([row[:, -about.window :] for row in series.rows()], 0)
        told = scores_of(model, _from_numpy(windows.values), device=self.device)
        return windows.restored(told.numpy())

    def score(self, X: Any, y: None = None) -> float:
        """R² of the last horizon of each series, told by what is before it."""
        rows: Sequence[NDArray[np.float32]] = self._series(X).rows()
        truth = np.stack([row[:, -self.horizon :] for row in rows])
        told = self.predict([row[:, : -self.horizon] for row in rows])
        return float(1 - ((told - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())


def _windows(found: Windows) -> TensorDataset:
    return TensorDataset(_from_numpy(found.values), _from_numpy(found.following))
