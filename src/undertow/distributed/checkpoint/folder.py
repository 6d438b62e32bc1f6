"""Reading: every process what it has places for, whoever wrote it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...core.modes import no_grad
from ...core.tensor import Tensor
from ...errors import ArgumentError, FileError, ShapeError
from ...files import safetensors
from .tree import filled
from .writing import METADATA, place_of


def load(
    state_dict: Any,
    *,
    checkpoint_id: Any = None,
    storage_reader: Any = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Fill a state from the folder `checkpoint_id`: tensors in place, other values anew.

    The number of processes need not be that of `save`.
    """
    path = place_of("load", checkpoint_id, storage_reader)
    content = _Content(path)
    if not isinstance(state_dict, dict):
        raise ArgumentError(f"[load] expects a dict, got {type(state_dict).__name__}")
    with no_grad():
        filled(state_dict, content.value)


def load_state_dict(state_dict: Any, storage_reader: Any, process_group: Any = None) -> None:
    """`load`, by its old name."""
    load(state_dict, storage_reader=storage_reader, process_group=process_group)


class _Content:
    """What a checkpoint has."""

    def __init__(self, path: Path) -> None:
        try:
            listed = json.loads((path / METADATA).read_text())
        except FileNotFoundError:
            raise FileError(f"[load] {path} is no checkpoint: it has no {METADATA}") from None
        except ValueError as error:
            raise FileError(f"[load] {path / METADATA} is damaged: {error}") from error
        self.path = path
        self.tensors: dict[str, Any] = listed["tensors"]
        self.values: dict[str, Any] = listed["values"]
        self.files: dict[int, dict[str, Tensor]] = {}

    def value(self, key: str, now: Any) -> Any:
        """The value of a path, in the memory of the tensor that is there now."""
        if not isinstance(now, Tensor):
            if key in self.tensors:
                return self._read(key, None)
            if key not in self.values:
                raise FileError(f"[load] {self.path} has nothing for {key}")
            new = self.values[key]
            return tuple(new) if isinstance(now, tuple) else new
        if key not in self.tensors:
            raise FileError(f"[load] {self.path} has no tensor for {key}")
        return self._read(key, now)

    def _read(self, key: str, out: Tensor | None) -> Tensor:
        entry = self.tensors[key]
        shape = tuple(entry["shape"])
        if out is not None and tuple(out.shape) != shape:
            raise ShapeError(
                f"[load] {key} has shape {shape} in {self.path}, and {tuple(out.shape)} here"
            )
        parts = [self._file(rank)[f"{key}:{start}"] for rank, start, _ in entry["parts"]]
        if out is None:
            from ...ops.shape.joining import cat

            return cat(parts).reshape(shape)
        if out.is_contiguous():
            memory = out.detach().view(-1)
            for part, (_, start, stop) in zip(parts, entry["parts"], strict=True):
                memory[start:stop].copy_(part)
        else:
            from ...ops.shape.joining import cat

            out.detach().copy_(cat(parts).reshape(shape))
        return out

    def _file(self, rank: int) -> dict[str, Tensor]:
        if rank not in self.files:
            self.files[rank] = safetensors.load_file(self.path / f"{rank}.safetensors")
        return self.files[rank]
