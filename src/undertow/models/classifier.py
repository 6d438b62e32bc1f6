"""What the classifiers share: features over time, their mean, a linear layer, how they begin."""

from __future__ import annotations

from .. import nn
from ..core.tensor import Tensor
from ..errors import ShapeError

EPSILON = 1e-3  # of batch norms, as in Keras, with which the published figures were made


def convolution(inputs: int, outputs: int, kernel: int, bias: bool = True) -> nn.Conv1d:
    """A convolution that keeps the length."""
    return nn.Conv1d(inputs, outputs, kernel, padding="same", bias=bias)


def norm(channels: int) -> nn.BatchNorm1d:
    """A batch norm; see Note [statistics] in training.py for its momentum."""
    return nn.BatchNorm1d(channels, eps=EPSILON)


class Classifier(nn.Module):
    """Base of the models: a subclass computes `features`, of shape (number, width, length).

    The scores are a linear function of the mean of the features over time, so they are also the
    mean over time of `activation_maps`: how much each moment speaks for each class.
    """

    def __init__(self, in_channels: int, num_classes: int, width: int) -> None:
        super().__init__()
        for name, number in (("in_channels", in_channels), ("num_classes", num_classes)):
            if number < 1:
                raise ShapeError(f"[{type(self).__name__}] {name} must be 1 or more, got {number}")
        self.in_channels, self.num_classes = in_channels, num_classes
        self.head = nn.Linear(width, num_classes)

    def begin(self) -> None:
        """Give every weight its first value as Keras does: Glorot's uniform, and no bias."""
        for module in self.modules():
            if isinstance(module, nn.Conv1d | nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def features(self, x: Tensor) -> Tensor:
        """What is found at each moment of the series."""
        raise NotImplementedError(f"[{type(self).__name__}] has no features")

    def forward(self, x: Tensor) -> Tensor:
        """The scores (logits) of the classes, of shape (number, classes)."""
        scores: Tensor = self.head(self._checked_features(x).mean(dim=2))
        return scores

    def activation_maps(self, x: Tensor) -> Tensor:
        """How much each moment speaks for each class, of shape (number, classes, length).

        These are the class activation maps of B. Zhou et al. (2016): the scores before the mean
        over time. In evaluation their mean, plus the bias, is what `forward` returns.
        """
        return self.head.weight @ self._checked_features(x)

    def _checked_features(self, x: Tensor) -> Tensor:
        if x.dim() != 3 or x.shape[1] != self.in_channels:
            raise ShapeError(
                f"[{type(self).__name__}] expects series of shape (number, {self.in_channels}, "
                f"length), got {tuple(x.shape)}"
            )
        return self.features(x)
