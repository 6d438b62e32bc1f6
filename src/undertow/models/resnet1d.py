"""ResNet1d: the residual network of Wang, Yan and Oates (2017)."""

from __future__ import annotations

from .. import nn
from ..core.tensor import Tensor
from ..nn import functional as F
from .classifier import Chain, Classifier, Masked, convolution, norm


class _Block(Masked, nn.Module):
    """Three convolutions of widths 8, 5 and 3 around a shortcut."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for into, kernel in ((inputs, 8), (outputs, 5), (outputs, 3)):
            layers += [convolution(into, outputs, kernel), norm(outputs), nn.ReLU()]
        self.body = Chain(*layers[:-1])  # the last ReLU comes after the sum
        self.shortcut = (
            norm(inputs)
            if inputs == outputs
            else Chain(convolution(inputs, outputs, 1), norm(outputs))
        )

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        """The ReLU of both ways' sum."""
        return F.relu(self.body(x, valid) + self.shortcut(x, valid))


class ResNet1d(Classifier):
    """Three residual blocks of 64, 128 and 128 channels; the mean over time.

    As in H. Ismail Fawaz et al., "Deep learning for time series classification: a review" (2019).

    >>> import undertow as ut
    >>> from undertow.models import ResNet1d
    >>> ResNet1d(in_channels=2, num_classes=4)(ut.zeros(3, 2, 20)).shape
    (3, 4)
    """

    def __init__(self, in_channels: int = 1, num_classes: int = 2) -> None:
        super().__init__(in_channels, num_classes, width=128)
        self.body = Chain(_Block(in_channels, 64), _Block(64, 128), _Block(128, 128))
        self.begin()

    def features(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        """128 channels."""
        found: Tensor = self.body(x, valid)
        return found
