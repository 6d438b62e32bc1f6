"""`UNDERTOW_COMPILE=check`: each call of a program beside an eager one, compared bit for bit.

Both begin with the same memory: what the program has changed is put back before the eager call,
whose results are the ones that are given. A program that changes more of the host than that (a
schedule of learning rates) is not checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.tensor import Tensor
from ..errors import UndertowError
from ..utils._pytree import tree_flatten
from .program import BUSY, NOT_NOW, Program


class Different(UndertowError):
    """A program gave other bits than an eager call."""


def checked(compiled: Any, program: Program, args: Any, kwargs: Any, tensors: Any) -> Any:
    """The result of an eager call, after a call of the program has given the same."""
    trace = program.trace
    again = (compiled._function, args, kwargs)
    if trace.recording.told:
        return program.call(tensors, again)
    held = [t for t, _, _ in program.holders] + list(tensors)
    before = [t._array.copy() for t in held]
    versions = [(v, v.value) for v, _ in trace.versions]
    grads = [(g.leaf, g.leaf._grad) for g in trace.grads]
    draws = [(g, g._seed, g._offset) for g, _ in trace.recording.draws]
    found = program.call(tensors, again)
    if found is NOT_NOW or found is BUSY:
        return found
    results = _copies(found)
    state = [t._array.copy() for t in held]
    made = [None if a is None else a.copy() for a in _grads(program)]
    found = None
    for t, array in zip(held, before, strict=True):
        if t._array.flags.writeable:
            np.copyto(t._array, array)
    for version, value in versions:
        version.value = value
    for leaf, grad in grads:
        leaf._grad = grad
    for generator, seed, offset in draws:
        generator._seed, generator._offset = seed, offset
    program.busy = None
    eager = compiled._function(*args, **kwargs)
    compare = [
        ("a result", results, _copies(eager)),
        ("a tensor from outside", state, [t._array for t in held]),
        ("a gradient", made, _grads(program)),
    ]
    for what, ours, theirs in compare:
        for a, b in zip(ours, theirs, strict=True):
            if (a is None) != (b is None) or (a is not None and not _same(a, b)):
                raise Different(
                    f"[compile] {what} of {compiled._name()} differs from that of an eager call: "
                    f"{a} and {b}; with UNDERTOW_KERNELS=always both take the same kernels"
                )
    return eager


def _grads(program: Program) -> list[Any]:
    found = [g.leaf._grad for g in program.trace.grads]
    return [None if t is None else t._array for t in found]


def _copies(result: Any) -> list[Any]:
    leaves = tree_flatten(result)[0]
    return [leaf._array.copy() for leaf in leaves if isinstance(leaf, Tensor)]


def _same(a: Any, b: Any) -> bool:
    return bool(
        a.shape == b.shape
        and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()
    )
