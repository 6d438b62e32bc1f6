"""Nested containers, by torch's name for its faster implementation; here it is the same one."""

from ...utils._pytree import *  # noqa: F403
from ...utils._pytree import __all__ as __all__
