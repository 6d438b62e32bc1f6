"""Models of time series: convolutions over time, and one linear layer."""

from collections.abc import Callable

from .classifier import Classifier
from .fcn import FCN
from .forecaster import Forecaster
from .inception_time import InceptionTime
from .resnet1d import ResNet1d

# How to make each for so many channels and classes, by the names of the command line.
MODELS: dict[str, Callable[[int, int], Classifier]] = {
    "fcn": FCN,
    "resnet": ResNet1d,
    "inception": InceptionTime,
}

# Last, since they ask for MODELS.
from .estimators import TimeSeriesClassifier, TimeSeriesForecaster, TimeSeriesRegressor  # noqa: E402

__all__ = [
    "FCN",
    "Classifier",
    "Forecaster",
    "InceptionTime",
    "MODELS",
    "ResNet1d",
    "TimeSeriesClassifier",
    "TimeSeriesForecaster",
    "TimeSeriesRegressor",
]
