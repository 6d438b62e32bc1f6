"""Time-series classifiers: convolutions, the mean over time, and one linear layer."""

from collections.abc import Callable

from .classifier import Classifier
from .fcn import FCN
from .inception_time import InceptionTime
from .resnet1d import ResNet1d

# How to make each for so many channels and classes, by the names of the command line.
MODELS: dict[str, Callable[[int, int], Classifier]] = {
    "fcn": FCN,
    "resnet": ResNet1d,
    "inception": InceptionTime,
}

__all__ = ["FCN", "InceptionTime", "MODELS", "ResNet1d", "Classifier"]
