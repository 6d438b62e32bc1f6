"""`undertow.export`: a call of a module as a program of ops, with inputs whose sizes may vary.

The module is called with real tensors, and the ops that run are the program (`fx.recording`). For
sizes that may vary it is called with others, too, and numbers that follow a size are computed from
it. Files of programs are neither written nor read: `undertow.onnx` writes models.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import UnsupportedError
from ...utils._pytree import register_pytree_node
from .dynamic_shapes import AdditionalInputs, Constraint, Dim, ShapesCollection, dims
from .exported_program import (
    ExportedProgram,
    ModuleCallEntry,
    ModuleCallSignature,
    default_decompositions,
)
from .graph_signature import ExportBackwardSignature, ExportGraphSignature
from .programs import export

__all__ = [
    "AdditionalInputs",
    "Constraint",
    "CustomDecompTable",
    "Dim",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "ExportedProgram",
    "FlatArgsAdapter",
    "ModuleCallEntry",
    "ModuleCallSignature",
    "ShapesCollection",
    "UnflattenedModule",
    "default_decompositions",
    "dims",
    "draft_export",
    "export",
    "export_for_training",
    "load",
    "register_dataclass",
    "save",
    "unflatten",
]

export_for_training = draft_export = export


class CustomDecompTable(dict[Any, Any]):
    """A table of decompositions: nothing is decomposed."""


class FlatArgsAdapter:
    """A base for what changes the arguments of an `UnflattenedModule`, which is refused."""


class UnflattenedModule:
    """Refused: see `unflatten`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        unflatten(None)


def unflatten(module: Any, flat_args_adapter: Any = None) -> Any:
    """Refused: a program is flat."""
    raise UnsupportedError(
        "[export.unflatten] a program does not keep the modules that it was made of; use "
        "exported_program.module(), or the module that was exported"
    )


def save(ep: Any, f: Any, **options: Any) -> None:
    """Refused: there is no file format of programs."""
    raise UnsupportedError(
        "[export.save] programs are not written to files; write the model with "
        "undertow.onnx.export, or its state_dict with ut.save and export it again"
    )


def load(f: Any, **options: Any) -> ExportedProgram:
    """Refused: there is no file format of programs."""
    raise UnsupportedError(
        "[export.load] programs of torch.export are not read; load the state_dict into the module"
    )


def register_dataclass(
    cls: Any, *, serialized_type_name: str | None = None
) -> Callable[..., Any] | None:
    """Let instances of a dataclass be containers of inputs and outputs.

    >>> import undertow as ut
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Pair:
    ...     first: ut.Tensor
    ...     second: ut.Tensor
    >>> ut.export.register_dataclass(Pair)
    >>> ut.utils._pytree.tree_leaves(Pair(1, 2))
    [1, 2]
    """
    from dataclasses import fields, is_dataclass

    if not is_dataclass(cls):
        raise AssertionError(f"[export.register_dataclass] takes a dataclass, got {cls}")
    names = [f.name for f in fields(cls) if f.init]
    kind: Any = cls
    register_pytree_node(
        kind,
        lambda value: ([getattr(value, n) for n in names], names),
        lambda values, names: kind(**dict(zip(names, values, strict=True))),
    )
    return None
