"""TensorBoard's writer of event files, which is refused."""

from __future__ import annotations

from typing import Any

from ...errors import UnsupportedError

__all__ = ["SummaryWriter"]


class SummaryWriter:
    """An error when it is made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise UnsupportedError(
            "[SummaryWriter] event files are not written here; tensorboardX's SummaryWriter takes "
            "the same calls, with numbers and NumPy arrays"
        )
