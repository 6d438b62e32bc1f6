"""A trained classifier as one safetensors file that tells what it is and what its classes are."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import FileError
from ..files.safetensors import safe_open, save_file
from . import MODELS
from .classifier import Classifier

_KEY = "undertow.classifier"


@dataclass(frozen=True)
class Description:
    """What a classifier needs to know of series, beside its weights."""

    model: str  # one of MODELS
    channels: int
    length: int  # of the series that it learnt from; it takes others
    classes: tuple[str, ...]
    normalise: bool
    data: str = ""

    def new_model(self) -> Classifier:
        """A classifier with fresh weights."""
        return MODELS[self.model](self.channels, len(self.classes))


def save_classifier(
    model: Classifier,
    description: Description,
    path: str | os.PathLike[str],
    notes: Mapping[str, Any] | None = None,
) -> None:
    """Write a classifier to a file, whole or not at all; `notes` are kept with it."""
    about = json.dumps({**asdict(description), "notes": dict(notes or {})})
    save_file(dict(model.state_dict()), path, {"format": "pt", _KEY: about})


def load_classifier(path: str | os.PathLike[str]) -> tuple[Classifier, Description]:
    """The classifier of a file, ready to be used."""
    name = os.path.basename(path)
    try:
        with safe_open(path, framework="pt") as file:
            about = (file.metadata() or {}).get(_KEY)
            weights = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except FileError as error:
        raise FileError(f"[{name}] cannot be used: {error}") from None
    if about is None:
        raise FileError(f"[{name}] is a safetensors file, but not one of `undertow train`")
    description = _described(name, about)
    model = description.new_model()
    model.load_state_dict(weights)
    return model.eval(), description


def _described(name: str, about: str) -> Description:
    """What a file says of its classifier, each field of which may be wrong."""
    wrong = f"[{name}] what the file tells of its classifier is damaged"
    try:
        given = json.loads(about)
        given.pop("notes", None)
        found = Description(**{**given, "classes": tuple(given["classes"])})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise FileError(f"{wrong}: {type(error).__name__}: {error}") from None
    if found.model not in MODELS:
        known = ", ".join(MODELS)
        raise FileError(f"[{name}] has a model {found.model!r}; known here are {known}")
    sizes = (found.channels, found.length)
    if not all(type(n) is int and 1 <= n < 1 << 31 for n in sizes) or not found.classes:
        raise FileError(f"{wrong}: {about[:200]}")
    if not all(isinstance(label, str) for label in found.classes):
        raise FileError(f"{wrong}: labels are not text")
    return found
