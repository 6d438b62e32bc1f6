"""Time-series classifiers: convolutions, the mean over time, and one linear layer."""

from .classifier import Classifier
from .fcn import FCN
from .inception_time import InceptionTime
from .resnet1d import ResNet1d

MODELS: dict[str, type[Classifier]] = {  # by the names of the command line
    "fcn": FCN,
    "resnet": ResNet1d,
    "inception": InceptionTime,
}

__all__ = ["FCN", "InceptionTime", "MODELS", "ResNet1d", "Classifier"]
