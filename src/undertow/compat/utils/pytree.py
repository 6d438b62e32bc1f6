"""Nested containers, by their public name in torch."""

from ...utils._pytree import *  # noqa: F403
from ...utils._pytree import __all__ as __all__
