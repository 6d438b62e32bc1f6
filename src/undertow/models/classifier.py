"""What the classifiers share: features over time, their mean, a linear layer, how they begin.

Note [uneven lengths]
Series of a batch that are shorter than the longest are padded at their end, and `lengths` says
where each ends. What stands in the padding never influences a result: a layer sees zeros there, as
beyond the end of a series that is alone (convolutions pad with zeros), batch norms count only the
moments that are there and leave zeros elsewhere, maxima see minus infinity, and the mean over time
is over each series' own moments. So a series has the same features alone and in any batch.
"""

from __future__ import annotations

from typing import Any

from .. import nn
from ..core.register import FUNCTIONS
from ..core.tensor import Tensor
from ..errors import ShapeError

EPSILON = 1e-3  # of batch norms, as in Keras, with which the published figures were made


def convolution(inputs: int, outputs: int, kernel: int, bias: bool = True) -> nn.Conv1d:
    """A convolution that keeps the length."""
    return nn.Conv1d(inputs, outputs, kernel, padding="same", bias=bias)


class Masked:
    """Layers that are told which moments are there: (number, length) of bool, or None for all."""


class Norm(Masked, nn.BatchNorm1d):
    """A batch norm of the moments that are there; elsewhere it gives zeros.

    See Note [statistics] in training.py for its momentum.
    """

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        """The normalised features."""
        if valid is None:
            return super().forward(x)
        rows = x.transpose(1, 2)
        normal = super().forward(rows[valid])
        return FUNCTIONS["zeros_like"](rows).index_put((valid,), normal).transpose(1, 2)


def norm(channels: int) -> Norm:
    """A batch norm as in Keras."""
    return Norm(channels, eps=EPSILON)


class Chain(Masked, nn.Sequential):
    """Layers one after the other, of which some are `Masked`."""

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        """The output of the last."""
        for layer in self:
            x = layer(x, valid) if isinstance(layer, Masked) else layer(x)
        return x


def moments(lengths: Tensor, longest: int) -> Tensor:
    """Which moments of padded series are there.

    >>> import undertow as ut
    >>> from undertow.models.classifier import moments
    >>> moments(ut.tensor([1, 3]), 3).tolist()
    [[True, False, False], [True, True, True]]
    """
    return FUNCTIONS["arange"](longest, device=lengths.device) < lengths.reshape(-1, 1)


class Classifier(nn.Module):
    """Base of the models: a subclass computes `features`, of shape (number, width, length).

    The scores are a linear function of the mean of the features over time, so they are also the
    mean over time of `activation_maps`: how much each moment speaks for each class.

    >>> import undertow as ut
    >>> from undertow import nn
    >>> class Small(ut.models.Classifier):
    ...     def __init__(self, in_channels, num_classes):
    ...         super().__init__(in_channels, num_classes, width=8)
    ...         self.conv = nn.Conv1d(in_channels, 8, 3, padding="same")
    ...
    ...     def features(self, x, valid=None):
    ...         return self.conv(x).relu()
    >>> model, x = Small(in_channels=1, num_classes=2), ut.rand(4, 1, 20)
    >>> model(x).shape, model.activation_maps(x).shape
    ((4, 2), (4, 2, 20))
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

    def features(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        """What is found at each moment of the series."""
        raise NotImplementedError(f"[{type(self).__name__}] has no features")

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """The scores (logits) of the classes, of shape (number, classes).

        Series that end before the last moment have their `lengths`: Note [uneven lengths].
        """
        found = self._checked_features(x, lengths)
        if lengths is None:
            mean = found.mean(dim=2)
        else:  # beyond a series' end the features are zero
            mean = found.sum(dim=2) / lengths.to(found.dtype).reshape(-1, 1)
        scores: Tensor = self.head(mean)
        return scores

    def activation_maps(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """How much each moment speaks for each class, of shape (number, classes, length).

        These are the class activation maps of B. Zhou et al. (2016): the scores before the mean
        over time. In evaluation their mean, plus the bias, is what `forward` returns.
        """
        return self.head.weight @ self._checked_features(x, lengths)

    def _checked_features(self, x: Tensor, lengths: Tensor | None) -> Tensor:
        if x.dim() != 3 or x.shape[1] != self.in_channels:
            raise ShapeError(
                f"[{type(self).__name__}] expects series of shape (number, {self.in_channels}, "
                f"length), got {tuple(x.shape)}"
            )
        if lengths is None:
            return self.features(x)
        if tuple(lengths.shape) != (len(x),):
            raise ShapeError(
                f"[{type(self).__name__}] expects a length for each of {len(x)} series, got "
                f"lengths of shape {tuple(lengths.shape)}"
            )
        valid = moments(lengths, x.shape[2])
        return self.features(masked(x, valid), valid)


def masked(x: Tensor, valid: Tensor | None, value: float = 0.0) -> Tensor:
    """The series with `value` wherever they have ended."""
    if valid is None:
        return x
    filled: Any = x.masked_fill(~valid.unsqueeze(1), value)
    return filled
