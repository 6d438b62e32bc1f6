"""Classes of process groups, by torch's second path to them."""

from typing import Any

from ... import distributed


def __getattr__(name: str) -> Any:
    return getattr(distributed, name)
