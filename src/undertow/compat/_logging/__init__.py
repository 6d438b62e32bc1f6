"""Logs of torch's compiler, which is not here: they can be asked for and stay empty."""

from __future__ import annotations

import logging
from typing import Any

__all__ = ["getArtifactLogger", "set_logs"]


def set_logs(**kwargs: Any) -> None:
    """Choose what is logged: there is nothing to log.

    >>> set_logs(dynamo=20)
    """


def getArtifactLogger(module_qname: str, artifact_name: str) -> logging.Logger:
    """The log of one artifact."""
    return logging.getLogger(f"{module_qname}.__{artifact_name}")


def warning_once(logger_obj: logging.Logger, *args: Any, **kwargs: Any) -> None:
    """A warning that is given once."""
    if args not in _SAID:
        _SAID.add(args)
        logger_obj.warning(*args, **kwargs)


_SAID: set[tuple[Any, ...]] = set()
