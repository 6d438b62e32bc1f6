"""What is known of the node that runs now, for nodes that are made meanwhile."""

from __future__ import annotations

import traceback as _traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .node import Node

__all__ = [
    "annotate",
    "format_stack",
    "get_current_meta",
    "has_preserved_node_meta",
    "preserve_node_meta",
    "set_current_meta",
    "set_stack_trace",
]

_meta: dict[str, Any] = {}
_preserved = False


@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Let nodes that are made while another one runs take over its `meta`."""
    global _meta, _preserved
    before = _preserved, _meta.copy()
    try:
        _preserved = enable
        yield
    finally:
        _preserved, _meta = before


def has_preserved_node_meta() -> bool:
    """Whether `preserve_node_meta` is in force."""
    return _preserved


def set_stack_trace(stack: list[str]) -> None:
    """Say where the program stands."""
    if _preserved and stack:
        _meta["stack_trace"] = "".join(stack)
    elif _preserved:
        _meta.pop("stack_trace", None)


def format_stack() -> list[str]:
    """Where the program stands, or what was said of that."""
    if _preserved:
        return [_meta.get("stack_trace", "")]
    return _traceback.format_list(_traceback.extract_stack()[:-1])


@contextmanager
def set_current_meta(node: Node, pass_name: str = "") -> Iterator[None]:
    """Say which node runs."""
    global _meta
    if not (_preserved and node.meta):
        yield
        return
    before = _meta
    try:
        _meta = dict(node.meta)
        yield
    finally:
        _meta = before


def get_current_meta() -> dict[str, Any]:
    """The `meta` of the node that runs."""
    return _meta


@contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """Add to the `meta["custom"]` of nodes that are made meanwhile."""
    global _meta
    before = _meta
    try:
        _meta = {**_meta, "custom": {**_meta.get("custom", {}), **annotation_dict}}
        yield
    finally:
        _meta = before
