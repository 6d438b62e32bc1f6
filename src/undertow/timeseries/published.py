"""Accuracies that others have published, to print beside one's own.

H. Ismail Fawaz, G. Forestier, J. Weber, L. Idoumghar and P.-A. Muller, "Deep learning for time
series classification: a review", Data Mining and Knowledge Discovery 33, 2019: mean and deviation
of five runs, in per cent, of FCN and ResNet.
"""

from __future__ import annotations

_ACCURACY = {
    ("fcn", "GunPoint"): (100.0, 0.0),
    ("fcn", "ItalyPowerDemand"): (96.3, 0.1),
    ("fcn", "OSULeaf"): (97.9, 0.5),
    ("resnet", "GunPoint"): (99.1, 0.7),
    ("resnet", "ItalyPowerDemand"): (96.2, 0.2),
    ("resnet", "OSULeaf"): (98.0, 0.6),
}


def published(model: str, data: str) -> tuple[float, float] | None:
    """Mean and deviation of the published accuracy in per cent; None if it is not known here.

    >>> from undertow.timeseries import published
    >>> published("fcn", "OSULeaf")
    (97.9, 0.5)
    """
    return _ACCURACY.get((model, data))
