"""`Forecaster`: what comes next in series."""

from __future__ import annotations

from .. import nn
from ..core.tensor import Tensor
from ..errors import ShapeError
from .classifier import Classifier


class Forecaster(nn.Module):
    """A line through the window, and what a network over time sees at its last moment.

    The line is one linear map over time for all channels, as in A. Zeng et al., "Are transformers
    effective for time series forecasting?" (2023).

    >>> import undertow as ut
    >>> from undertow.models import FCN, Forecaster
    >>> Forecaster(FCN(2, 2 * 3), window=12, horizon=3)(ut.zeros(5, 2, 12)).shape
    (5, 2, 3)
    """

    def __init__(self, network: Classifier, window: int, horizon: int) -> None:
        super().__init__()
        self.network, self.window, self.horizon = network, window, horizon
        self.line = nn.Linear(window, horizon)
        nn.init.zeros_(network.head.weight)  # it begins as the line alone

    def forward(self, x: Tensor) -> Tensor:
        """The next moments, of shape (number, channels, horizon)."""
        if x.dim() != 3 or x.shape[2] != self.window:
            raise ShapeError(
                f"[Forecaster] expects windows of shape (number, {self.network.in_channels}, "
                f"{self.window}), got {tuple(x.shape)}"
            )
        seen = self.network.head(self.network.features(x)[:, :, -1])
        told: Tensor = self.line(x) + seen.reshape(len(x), -1, self.horizon)
        return told
