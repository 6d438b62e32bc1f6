"""Recording: the node of a call, and the outputs that hang on it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from .modes import current
from .node import Node, new_node
from .op import Op
from .tensor import Tensor, node_of

_HOME = __file__.removesuffix(os.path.join("core", "record.py"))  # the library's own files
_DIFFERENTIABLE = "fcV"  # kinds of dtypes: floating, complex and bfloat16
_ALONE = (1, 1, 0)  # the plan of one input, which wants a gradient


def record(op: Op, inputs: Sequence[Any], params: tuple[Any, ...], outs: Sequence[Tensor]) -> None:
    """If some input has a history, make the node of a call and hang its outputs on it."""
    parents: list[Node | None] = []
    indices: list[int] = []
    needs = numbers = 0
    bit = 1
    shared = op.view  # whether anything saved may share its memory, and so have a version
    for t in inputs:
        try:
            alias = None if t is None else t._alias
        except AttributeError:  # a number
            t = None
        if t is None:
            parents.append(None)
            indices.append(0)
            numbers |= bit
            bit += bit
            continue
        if alias is None:
            parent = t._node
        else:
            parent = node_of(t)
            shared = True
        parents.append(parent)
        indices.append(t._index)
        if parent is not None:
            needs |= bit
        bit += bit
    if not needs:
        return
    first = outs[0]
    array = first._array
    metas: tuple[Any, ...] = ()
    if len(outs) == 1:
        if array.dtype.kind != "f":
            if not differentiable(array.dtype):
                return
            if array.dtype.kind == "c":
                op = op.on_complex
    elif op.differentiable > 1 or array.dtype.kind != "f":
        dtypes = [o._array.dtype for o in outs]
        kinds = [dtype.kind for dtype in dtypes[: op.differentiable]]
        which = [i for i, kind in enumerate(kinds) if kind in _DIFFERENTIABLE]
        if not which:
            return
        if "c" in kinds:
            op = op.on_complex
        if op.differentiable > 1:
            metas = tuple([(o._array.shape, dtype) for o, dtype in zip(outs, dtypes, strict=True)])
    key = (len(parents), needs, numbers)
    plan = op.plans.get(key) or op.plan(*key)
    state = current()
    versions = None
    if plan.facts is not None:
        saved: Any = plan.facts(inputs[0]._array.shape, params)
    elif plan.keep is not None and not shared and state.plain:
        saved = plan.keep(inputs[0], inputs[-1], array)
    else:
        saved, versions = plan.save(inputs, params, outs)
    shape = None if metas else array.shape
    node = new_node(plan, tuple(parents), tuple(indices), shape, array.dtype, saved, versions)
    if not metas:
        first._node = node
    else:
        node.metas = metas
        for i in which:
            out = outs[i]
            out._node = node
            out._index = i
    if state.anomaly:
        node.site = forward_stack()


def record_alone(op: Op, x: Tensor, parent: Node, params: tuple[Any, ...], *outs: Tensor) -> None:
    """`record`, quicker, for an op of one tensor, whose node is `parent`; of one dtype are outs."""
    first = outs[0]
    array = first._array
    dtype = array.dtype
    if dtype.kind != "f":
        if not differentiable(dtype):
            return
        if dtype.kind == "c":
            op = op.on_complex
    plan = op.plans.get(_ALONE) or op.plan(*_ALONE)
    if plan.facts is None:
        record(op, (x,), params, outs)
        return
    saved = plan.facts(x._array.shape, params)
    first._node = node = new_node(plan, (parent,), (x._index,), array.shape, dtype, saved)
    if len(outs) > 1:
        node.metas = tuple([(t._array.shape, dtype) for t in outs])
        for i, t in enumerate(outs):
            t._node = node
            t._index = i
    if current().anomaly:
        node.site = forward_stack()


def differentiable(dtype: Any) -> bool:
    """Whether an output of a dtype has a derivative: floating, complex and bfloat16."""
    return dtype.kind in _DIFFERENTIABLE


def forward_stack() -> list[str]:
    """The user's stack at this point, formatted, without the library's own frames."""
    import traceback

    frames = traceback.extract_stack()
    while frames and frames[-1].filename.startswith(_HOME):
        frames.pop()
    stack = traceback.format_list(frames)
    origin = current().origin
    if origin is not None and origin.site:
        stack += [f"which ran the backward of {origin.name()}, made by:\n", *origin.site]
    return stack
