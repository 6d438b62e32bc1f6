"""Writing: every process its part, into a folder that gets its name when all is there."""

from __future__ import annotations

import json
import logging
import os
import shutil
import uuid
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ...core.modes import no_grad
from ...core.tensor import Tensor
from ...errors import ArgumentError
from ...files import safetensors
from ...files.atomic import write_file
from .. import functions, groups
from .tree import flat, opened

SPLIT = 1 << 22  # bytes from which a tensor that several processes have is written in parts
METADATA = "metadata.json"


def save(
    state_dict: Any,
    *,
    checkpoint_id: Any = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> None:
    """Write a state together with the other processes, as the folder `checkpoint_id`.

    Where several processes have a value under one path, it is taken to be the same. An error of
    one process is an error of all, and leaves what was there before.

    >>> import tempfile
    >>> import undertow as ut
    >>> from undertow.distributed import checkpoint
    >>> place = tempfile.mkdtemp() + "/step1"
    >>> checkpoint.save({"w": ut.ones(2), "step": 1}, checkpoint_id=place)
    >>> state = {"w": ut.zeros(2), "step": 0}
    >>> checkpoint.load(state, checkpoint_id=place)
    >>> state
    {'w': tensor([1., 1.]), 'step': 1}
    """
    path = place_of("save", checkpoint_id, storage_writer)
    _write(flat(opened(state_dict)), path, group_of(process_group, no_dist))


def save_state_dict(state_dict: Any, storage_writer: Any, process_group: Any = None) -> None:
    """`save`, by its old name."""
    save(state_dict, storage_writer=storage_writer, process_group=process_group)


_thread: list[ThreadPoolExecutor] = []


def async_save(
    state_dict: Any,
    *,
    checkpoint_id: Any = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: Any = None,
    **more: Any,
) -> Future[None]:
    """Copy a state, and write it while the program goes on; `result()` of the future waits.

    So does `destroy_process_group`. An error is raised by `result()`, and logged.
    """
    path = place_of("async_save", checkpoint_id, storage_writer)
    with no_grad():
        state = {
            key: value.detach().clone() if isinstance(value, Tensor) else value
            for key, value in flat(opened(state_dict)).items()
        }
    group = group_of(process_group, False)
    if group is not None and group.members > 1:
        group = groups.helper(group, "checkpoints")
    if not _thread:
        _thread.append(ThreadPoolExecutor(1, "undertow-checkpoint"))
    made = _thread[0].submit(_write, state, path, group)
    groups.state.saves.add(made)
    made.add_done_callback(_ended)
    return made


def _ended(save: Future[None]) -> None:
    groups.state.saves.discard(save)
    error = None if save.cancelled() else save.exception()
    if error is not None:
        logging.getLogger(__name__).error("[async_save] %s", error)


def place_of(name: str, path: Any, storage: Any) -> Path:
    """The folder that is meant."""
    given = path if path is not None else getattr(storage, "path", storage)
    if given is None:
        raise ArgumentError(f"[{name}] needs checkpoint_id, the path of a folder")
    return Path(os.fspath(given))


def group_of(group: Any, alone: bool) -> Any:
    """The group that works together; None for this process only."""
    if alone or (group is None and groups.state.world is None):
        return None
    return groups.resolved("checkpoint", group)


def _everyone(value: Any, group: Any) -> list[Any]:
    found: list[Any] = [value]
    if group is not None and group.members > 1:
        found = [None] * group.members
        functions.all_gather_object(found, value, group)
    return found


def _write(state: dict[str, Any], path: Path, group: Any) -> None:
    me = 0 if group is None else group.me
    tensors = {key: v.detach() for key, v in state.items() if isinstance(v, Tensor)}
    values = {key: v for key, v in state.items() if not isinstance(v, Tensor)}
    about = {
        key: (str(t.dtype).rpartition(".")[2], tuple(t.shape), t.numel() * t.element_size())
        for key, t in tensors.items()
    }
    known = _everyone((about, values, uuid.uuid4().hex[:8]), group)
    draft = path.with_name(f".{path.name}.{known[0][2]}")
    parts = planned([a for a, _, _ in known])
    problem = ""
    try:
        draft.mkdir(parents=True, exist_ok=True)
        mine = {
            f"{key}:{start}": tensors[key].reshape(-1)[start:stop]
            for key, owners in parts.items()
            for rank, start, stop in owners
            if rank == me
        }
        write_file(draft / f"{me}.safetensors", safetensors.pieces("save", mine))
        if me == 0:
            merged: dict[str, Any] = {}
            for _, some, _ in reversed(known):
                merged |= some
            shapes = {key: (d, s) for a, _, _ in reversed(known) for key, (d, s, _) in a.items()}
            listed = {
                key: {"dtype": shapes[key][0], "shape": shapes[key][1], "parts": parts[key]}
                for key in parts
            }
            text = json.dumps({"version": 1, "tensors": listed, "values": merged})
            (draft / METADATA).write_text(text)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    agreed(_everyone(problem, group), draft, me)
    problem = ""
    if me == 0:
        try:
            _replace(draft, path)
        except OSError as error:
            problem = f"{type(error).__name__}: {error}"
    agreed(_everyone(problem, group), draft, me)


def agreed(problems: list[str], draft: Path, me: int) -> None:
    """Raise if one process had a problem, the same error at all."""
    from . import CheckpointException

    bad = [f"rank {rank}: {text}" for rank, text in enumerate(problems) if text]
    if bad:
        if me == 0:
            shutil.rmtree(draft, ignore_errors=True)
        raise CheckpointException(f"[save] the checkpoint was not written; {'; '.join(bad)}")


def _replace(draft: Path, path: Path) -> None:
    """Give the folder its name, in the place of one that was there."""
    old = path.with_name(f"{draft.name}.old")
    if path.exists():
        path.rename(old)
    try:
        draft.rename(path)
    except OSError:
        if old.exists():
            old.rename(path)
        raise
    shutil.rmtree(old, ignore_errors=True)


def planned(known: list[dict[str, Any]]) -> dict[str, list[tuple[int, int, int]]]:
    """Who writes which elements of each tensor: (rank, from, to), the same at every process."""
    loads = [0] * len(known)
    owners: dict[str, list[int]] = {}
    for rank, about in enumerate(known):
        for key in about:
            owners.setdefault(key, []).append(rank)
    parts: dict[str, list[tuple[int, int, int]]] = {}
    for key, ranks in owners.items():
        _, shape, size = known[ranks[0]][key]
        count = 1
        for n in shape:
            count *= n
        if size >= SPLIT and len(ranks) > 1:
            share = -(-count // len(ranks))
            parts[key] = [
                (rank, i * share, min(count, (i + 1) * share)) for i, rank in enumerate(ranks)
            ]
            for rank in ranks:
                loads[rank] += size // len(ranks)
        else:
            rank = min(ranks, key=lambda r: (loads[r], r))
            parts[key] = [(rank, 0, count)]
            loads[rank] += size
    return parts
