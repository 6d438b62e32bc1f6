"""Windows of signals: torch's `signal.windows`, published by `undertow.ops`."""

from ....core.register import SPACES as _spaces

globals().update(_spaces["signal.windows"])
__all__ = sorted(_spaces["signal.windows"])
