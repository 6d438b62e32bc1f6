"""FCN: the fully convolutional network of Wang, Yan and Oates (2017)."""

from __future__ import annotations

from .. import nn
from ..core.tensor import Tensor
from .classifier import Chain, Classifier, convolution, norm


class FCN(Classifier):
    """Three convolutions (128×8, 256×5, 128×3), each with batch norm and ReLU; the mean over time.

    As in H. Ismail Fawaz et al., "Deep learning for time series classification: a review" (2019).

    >>> import undertow as ut
    >>> from undertow.models import FCN
    >>> model = FCN(in_channels=1, num_classes=3)
    >>> model(ut.zeros(2, 1, 50)).shape
    (2, 3)
    >>> model.activation_maps(ut.zeros(2, 1, 50)).shape
    (2, 3, 50)
    """

    def __init__(self, in_channels: int = 1, num_classes: int = 2) -> None:
        super().__init__(in_channels, num_classes, width=128)
        layers: list[nn.Module] = []
        inputs = in_channels
        for outputs, kernel in ((128, 8), (256, 5), (128, 3)):
            layers += [convolution(inputs, outputs, kernel), norm(outputs), nn.ReLU()]
            inputs = outputs
        self.body = Chain(*layers)
        self.begin()

    def features(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        """128 channels."""
        found: Tensor = self.body(x, valid)
        return found
