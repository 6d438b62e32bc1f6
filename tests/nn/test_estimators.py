"""Models in scikit-learn's manner: what they learn, their parameters, and scikit-learn itself."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.errors import ArgumentError
from undertow.models import TimeSeriesClassifier, TimeSeriesForecaster, TimeSeriesRegressor


def waves(number: int = 24, length: int = 16) -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    fast = np.arange(number) % 2
    X = np.sin((0.3 + fast[:, None]) * np.arange(length) + random.uniform(0, 6, (number, 1)))
    return X, np.array(["slow", "fast"])[fast]


def test_classifier() -> None:
    X, y = waves()
    before = ut.get_rng_state()
    model = TimeSeriesClassifier(epochs=8, lr=2e-3).fit(X, y)
    assert bool((ut.get_rng_state() == before).all()), "the caller's random numbers are untouched"
    assert model.score(X, y) == (model.predict(X) == y).mean() >= 0.9
    told = model.predict_proba(X)
    np.testing.assert_allclose(told.sum(axis=1), 1, rtol=1e-5)
    assert model.classes_[told.argmax(axis=1)].tolist() == model.predict(X).tolist()
    losses = [row["validation_loss"] for row in model.history_]
    assert model.best_epoch_ == 1 + int(np.argmin(losses))
    again = TimeSeriesClassifier(**model.get_params()).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), told)


def test_uneven_lengths_and_gaps() -> None:
    """A list of series, and an array that is padded with NaN: the same answers."""
    X, y = waves()
    rows = [row[: 10 + i % 7].copy() for i, row in enumerate(X)]
    for row in rows:
        row[4] = np.nan
    padded = np.full((len(rows), 16), np.nan)
    for into, row in zip(padded, rows, strict=True):
        into[: len(row)] = row
    model = TimeSeriesClassifier(epochs=2).fit(rows, y)
    np.testing.assert_array_equal(model.predict_proba(rows), model.predict_proba(padded))
    alone = np.concatenate([model.predict_proba([row]) for row in rows])
    np.testing.assert_allclose(model.predict_proba(rows), alone, rtol=1e-3, atol=1e-5)


def test_regressor() -> None:
    """The level of a series, which a normalised series has not; in its own unit."""
    random = np.random.default_rng(0)
    y = random.uniform(100, 300, 40)
    X = y[:, None] + random.normal(0, 5, (40, 10))
    model = TimeSeriesRegressor(epochs=25, lr=3e-3).fit(X, y)
    assert model.score(X, y) > 0.8
    wrong = ((model.predict(X) - y) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    assert model.score(X, y) == pytest.approx(1 - wrong)


def test_forecaster() -> None:
    """Waves of different levels and sizes go on as they do; nothing of the future is looked at."""
    phase, size = np.arange(6)[:, None], 10.0 ** np.arange(6)[:, None]
    whole = size * (3 + np.sin(0.5 * np.arange(64) + phase))
    model = TimeSeriesForecaster(horizon=4, window=16, epochs=12, lr=3e-3).fit(whole[:, :60])
    told = model.predict(whole[:, :60])
    assert told.shape == (6, 1, 4)
    wrong = np.abs(told[:, 0] - whole[:, 60:]) / size
    naive = np.abs(whole[:, 59:60] - whole[:, 60:]) / size
    assert wrong.mean() < 0.5 * naive.mean()
    np.testing.assert_allclose(model.predict(whole[:, 44:60]), told, rtol=1e-6)
    assert model.score(whole) > 0.9


def test_one_series_alone() -> None:
    wave = np.sin(np.arange(60) / 3)
    model = TimeSeriesForecaster(horizon=4, epochs=2)
    assert model.fit(wave).predict(wave[-30:].tolist()).shape == (1, 1, 4)
    assert np.isfinite(model.score(wave))
    with pytest.raises(ut.errors.ArgumentError, match="the values of one"):
        TimeSeriesClassifier().fit(wave, np.arange(60) % 2)


@pytest.mark.parametrize("kind", [TimeSeriesClassifier, TimeSeriesRegressor, TimeSeriesForecaster])
def test_bad_series(kind: Any) -> None:
    with pytest.raises(ut.errors.ArgumentError, match="call fit before"):
        kind().predict(np.ones((3, 9)))
    with pytest.raises(ut.errors.ArgumentError, match=r"rows of numbers.*'a'"):
        kind().fit([["a", "b"], ["c", "d"]], [0, 1])


def test_parameters() -> None:
    model = TimeSeriesClassifier(epochs=3)
    assert model.get_params()["epochs"] == 3
    assert model.set_params(epochs=5, model="resnet").epochs == 5
    assert repr(model) == "TimeSeriesClassifier(epochs=5, model='resnet')"
    with pytest.raises(ArgumentError, match="no parameter 'epoch'; there are batch_size"):
        model.set_params(epoch=1)
    X, y = waves(8)
    for wrong, message in (
        ({"model": "oracle"}, "no model 'oracle'"),
        ({"validation": 1.5}, "validation is a part"),
    ):
        with pytest.raises(ArgumentError, match=message):
            TimeSeriesClassifier(**wrong).fit(X, y)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="call fit before predict"):
        TimeSeriesRegressor().predict(X)
    with pytest.raises(ArgumentError, match="a target for each of 8 series"):
        TimeSeriesClassifier().fit(X, y[:-1])
    with pytest.raises(ArgumentError, match="needs two classes"):
        TimeSeriesClassifier().fit(X, ["a"] * 8)


def test_it_needs_no_scikit_learn() -> None:
    code = "import sys, undertow.models; print('sklearn' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "False\n"


def test_in_scikit_learn() -> None:
    pytest.importorskip("sklearn")
    from sklearn.base import clone, is_classifier, is_regressor
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    X, y = waves()
    model = TimeSeriesClassifier(epochs=3)
    assert is_classifier(model)
    assert is_regressor(TimeSeriesRegressor())
    assert clone(model).get_params() == model.get_params()
    pipeline = make_pipeline(FunctionTransformer(np.tanh), model)
    assert pipeline.fit(X, y).predict(X).shape == (24,)
    scores = cross_val_score(pipeline, X, y, cv=2)
    assert scores.shape == (2,)
    assert np.isfinite(scores).all()
    search = GridSearchCV(model, {"epochs": [1, 2]}, cv=2).fit(X, y)
    assert search.best_params_["epochs"] in (1, 2)
    numbers = cross_val_score(TimeSeriesRegressor(epochs=1), X, X.mean(axis=1), cv=2)
    assert np.isfinite(numbers).all()
