"""The steps of a backward pass: take what arrived at a node, run its hooks and rule, deliver.

Every executor runs exactly this code; they only choose the thread. The lock guards the task's
state and is never held while anything is computed.

Note [bare gradients]
In a first-order pass (`create_graph=False`) gradients travel as bare arrays, and a node whose rule
is fused (Note [fused rules]) never sees a Tensor. Rules as written, hooks and captures get the
array wrapped in one. With `create_graph=True` gradients are Tensors throughout.

Note [added products]
Where a weight is used twice, its gradient is a sum of products. A matrix product can add to what is
there as it stores its result, so the second one is not made apart and added in another pass over
both. That is only done where it gives the very bits of the other way, which a pass with several
threads takes: there a gradient may come before its turn.
"""

from __future__ import annotations

from contextvars import ContextVar
from sys import getrefcount
from threading import Lock
from typing import Any

import numpy as np

from ..backends.cpu.choice import crossover
from ..backends.memory import owns
from ..backends.registry import CPU, backend_of
from ..core.dispatch import apply
from ..core.modes import current, enter, leave
from ..core.node import AccumulateGrad, Node
from ..core.op import OPS
from ..core.tensor import Tensor, share, wrap
from ..errors import GradientError
from ..kernel.expr import trace
from .task import Slots, Target, Task

_ndarray = np.ndarray
_np_add = np.add
_SUM = trace(lambda a, b: a + b, 2)
_LARGE = crossover(_SUM)  # elements from which on the CPU has a faster way to add


class Run:
    """A task with what its caller wants from it."""

    __slots__ = (
        "__weakref__",
        "alone",
        "bare",
        "captured",
        "captures",
        "create_graph",
        "lock",
        "plain",
        "quick",
        "retain_graph",
        "task",
    )

    def __init__(
        self,
        task: Task,
        retain_graph: bool,
        create_graph: bool,
        captures: set[tuple[Node, int]] | None = None,
    ) -> None:
        self.task = task
        self.lock = Lock()
        self.retain_graph = retain_graph
        self.create_graph = create_graph
        self.captures = captures  # the (node, output) pairs whose gradients the caller asked for
        self.captured: dict[tuple[Node, int], Tensor] = {}
        self.alone = True  # no second thread works at it
        self.bare = not create_graph
        self.plain = not current().anomaly
        self.quick = self.bare and captures is None and self.plain


running: ContextVar[Run | None] = ContextVar("undertow_running", default=None)  # the innermost


def advance(run: Run, ready: list[int], limit: int) -> None:
    """Run up to `limit` of the ready nodes, newest first; those they make ready join the list."""
    task = run.task
    nodes, inbox, targets = task.nodes, task.inbox, task.targets
    quick, plain, keep, alone = run.quick, run.plain, run.retain_graph, run.alone
    bare, captures = run.bare, run.captures
    while ready and limit:
        limit -= 1
        i = ready.pop()
        node = nodes[i]
        try:
            if quick and node.hooks is None:
                g = inbox[i]
                kind = node.__class__
                if kind is Node and g.__class__ is _ndarray:
                    plan = node.plan
                    fused = plan._fused
                    if fused is False:
                        fused = plan.fused
                    saved = node.saved
                    if fused is not None and saved is not None:
                        for k in plan.tensors:
                            if saved[k]._alias is not None:
                                saved = plan.unpack(node, saved)
                                break
                        inbox[i] = None
                        dtype = g.dtype
                        for target, result in zip(targets[i], fused(g, saved)):  # noqa: B905 (hot)
                            if target is None:
                                continue
                            if result.__class__ is not _ndarray or result.dtype is not dtype:
                                if result is None:  # another one has this one's share
                                    deliver(run, target, None, ready)
                                    continue
                                result = np.asarray(result, dtype)
                            j = target[0]
                            cell = inbox[j]
                            if cell is None:  # one output, one edge: nobody else delivers here
                                inbox[j] = result
                                ready.append(j)
                            elif (
                                alone
                                and cell.__class__ is Slots
                                and cell.owned
                                and cell.next == target[2]
                                and not cell.pending
                            ):  # `deliver`, without the lock that nobody contends for
                                if result.size < _LARGE:
                                    _np_add(cell.value, result, cell.value)
                                else:
                                    CPU.map(_SUM, (cell.value, result), dtype, cell.value)
                                cell.next += 1
                                if cell.next == cell.total:
                                    _completed(task, j, ready)
                            else:
                                deliver(run, target, result, ready)
                        result = cell = None  # likewise: `del results` below
                        if not keep and plan.tensors:
                            node.saved = None
                        continue
                    inbox[i] = None
                    row = targets[i]
                    if alone and plan.op.factors is not None and saved is not None:
                        row = _add_products(run, node, g, row, ready)
                    results = node.backward([wrap(g)], row)
                    if not keep:
                        node.release()
                    _deliver_all(run, node, row, results, ready)
                    del results  # a leaf may be about to keep one of them, see Note [stealing]
                    continue
                if kind is AccumulateGrad and g.__class__ is _ndarray:
                    inbox[i] = None
                    accumulate(node, g, False)  # type: ignore[arg-type]
                    continue
                del g
            elif plain and node.hooks is None and node.__class__ is Node:
                g = inbox[i]
                if g.__class__ is Tensor or g.__class__ is _ndarray:  # one output
                    inbox[i] = None
                    given: Any = wrap(g) if bare else g
                    if captures is not None and (node, 0) in captures:
                        run.captured[node, 0] = given
                    row = targets[i]
                    if any(row):
                        results = node.backward([given], row)
                        if not keep:
                            node.release()
                        _deliver_all(run, node, row, results, ready)
                        del results
                    continue
                del g
            _full_step(run, i, node, ready)
        except BaseException as error:
            _explain(error, node)
            raise


def _full_step(run: Run, i: int, node: Node, ready: list[int]) -> None:
    """Hooks, captures, several outputs, rules as written: everything that a node can have."""
    task = run.task
    grads = task.take(i)
    if run.bare:
        grads = [None if g is None else wrap(g) for g in grads]
    if node.hooks is not None:
        _before(node, grads)
    if run.captures is not None:
        for out, grad in enumerate(grads):
            if grad is not None and (node, out) in run.captures:
                run.captured[node, out] = grad
    if isinstance(node, AccumulateGrad):
        if run.captures is None and grads[0] is not None:
            _arrive(run, node, grads)
        return
    targets = task.targets[i]
    if not any(targets):
        return
    results = _gradients(run, node, grads, targets)
    del grads
    _deliver_all(run, node, targets, results, ready)


def _arrive(run: Run, node: AccumulateGrad, grads: list[Any]) -> None:
    """The gradient of a leaf, between the hooks of its node."""
    hooks = node.hooks
    if hooks is not None and hooks.pre:
        grads[:] = _run_prehooks(node, grads)
    given = tuple(grads) if hooks is not None and hooks.post else ()
    grad = grads.pop()
    if grad is not None:
        if run.bare:
            grad = grad._array  # no Tensor holds it now, unless a hook kept that
        accumulate(node, grad, run.create_graph)
    if given:
        for hook in list(hooks.post.values()):  # type: ignore[union-attr]
            changed = hook((), given)
            if changed is not None:
                _as_list(node, changed, 0, "a hook", "inputs")


def _run_prehooks(node: Node, grads: list[Any]) -> list[Any]:
    for hook in list(node.hooks.pre.values()):  # type: ignore[union-attr]
        before = _versions(grads)
        changed = hook(tuple(grads))
        _check_unchanged(node, grads, before)
        if changed is not None:
            grads = _as_list(node, changed, len(grads), "a prehook", "outputs")
            for out, grad in enumerate(grads):
                _check_hooked(node, out, grad, "a prehook")
    return grads


def _versions(grads: Any) -> list[int]:
    return [g._version if isinstance(g, Tensor) else 0 for g in grads]


def _check_unchanged(node: Node, grads: Any, before: list[int]) -> None:
    """A gradient may be on its way to several nodes, so a hook must not change it in place."""
    if _versions(grads) != before:
        raise GradientError(
            f"[{node.name()}] a hook changed a gradient in place; return a new one instead"
        )


def _check_hooked(node: Node, out: int, grad: Any, who: str) -> None:
    """A gradient that a hook returned must fit the output that it is for."""
    shape, dtype = node.metas[out]
    array = getattr(grad, "_array", None)
    if grad is not None and (array is None or array.shape != shape or array.dtype != dtype):
        raise _wrong_gradient(node, grad, shape, dtype, who)


def _deliver_all(run: Run, node: Node, targets: Any, results: Any, ready: list[int]) -> None:
    """Check what a rule returned and send it on."""
    task = run.task
    for target, result in zip(targets, results, strict=True):
        if target is None:
            continue
        if result is not None:
            shape, dtype = task.nodes[target[0]].metas[target[1]]
            array = getattr(result, "_array", None)
            if array is None or array.shape != shape or array.dtype != dtype:
                raise _wrong_gradient(node, result, shape, dtype)
            if run.bare:
                result = array
            del array
        deliver(run, target, result, ready)


def deliver(run: Run, target: Target, grad: Any, ready: list[int]) -> None:
    """Put a gradient into its slot, add what can be added, note the node if it became ready."""
    task = run.task
    lock = run.lock
    j, out, slot = target
    cell = task.inbox[j]
    if cell.__class__ is list:
        outputs, cell = cell, cell[out]
        if cell.__class__ is not Slots:
            with lock:
                outputs[out] = grad
                _completed(task, j, ready)
            return
    elif cell is None:
        task.inbox[j] = grad
        ready.append(j)
        return
    with lock:
        pair = cell.offer(slot, grad)
        if pair is None:
            if cell.next == cell.total:
                _completed(task, j, ready)
            return
    while pair is not None:
        owned = cell.owned or _sole(pair[0], _IN_SLOT)  # a statement of its own: it counts
        total = _add(pair[0], pair[1], owned)
        with lock:
            pair = cell.settle(total)
            if pair is None and cell.next == cell.total:
                _completed(task, j, ready)


def _add_products(run: Run, node: Node, g: Any, row: Any, ready: list[int]) -> Any:
    """Add the node's gradients to those that are there already, if they are products.

    Returns the row of targets without those that are done; see Note [added products].
    """
    inbox, plan, saved = run.task.inbox, node.plan, node.saved
    factors = plan.op.factors
    assert factors is not None
    left = None
    for k, target in enumerate(row):
        if target is None or g.ndim != 2:
            continue
        cell = inbox[target[0]]
        if (
            cell.__class__ is not Slots
            or cell.value is None
            or cell.next != target[2]
            or cell.pending
            or cell.busy
            or not (cell.owned or _sole(cell.value, _IN_CELL))
        ):
            continue
        other = saved[plan.calls[k][1][0]]
        if other.__class__ is not Tensor or other._alias is not None:
            continue  # its version is to be checked
        if not CPU.add_product(cell.value, *factors[k](g, other._array)):
            continue
        left = list(row) if left is None else left
        left[k] = None
        cell.owned = True
        cell.next += 1
        if cell.next == cell.total:
            _completed(run.task, target[0], ready)
    return row if left is None else left


def _sole(array: Any, count: int) -> bool:
    """Whether nobody holds a gradient but those who are known to; see Note [stealing]."""
    return array.__class__ is _ndarray and getrefcount(array) <= count and owns(array)


def _completed(task: Task, j: int, ready: list[int]) -> None:
    task.remaining[j] -= 1
    if not task.remaining[j]:
        cell = task.inbox[j]
        if cell.__class__ is Slots:
            task.inbox[j] = cell.value
            cell.value = None
        ready.append(j)


def _add(a: Any, b: Any, owned: bool) -> Any:
    """The sum of two gradients, bare or not; in place when `a` is a sum made here."""
    if a.__class__ is _ndarray and b.__class__ is _ndarray:
        if a.size >= _LARGE:
            return CPU.map(_SUM, (a, b), a.dtype, a if owned else None)
        if owned:
            return _np_add(a, b, a)
        total = _np_add(a, b)
        return total if total.__class__ is _ndarray else np.asarray(total)
    if isinstance(a, Tensor):
        return _sum(a, b)
    return _sum(wrap(a), wrap(b))._array


def _sum(a: Tensor, b: Tensor) -> Tensor:
    return apply(OPS["add"], (a, b))


def _gradients(run: Run, node: Node, grads: list[Any], targets: Any) -> Any:
    """The gradients of a node's inputs by its rule, between its hooks."""
    missing = sum(g is None for g in grads)
    if missing == len(grads) and not node.runs_empty:
        return [None] * len(targets)
    if missing:
        grads = node.materialize(grads)
    hooks = node.hooks
    if hooks is not None and hooks.pre:
        grads = _run_prehooks(node, grads)
        if all(g is None for g in grads):
            return [None] * len(targets)
        if any(g is None for g in grads):
            grads = node.materialize(grads)
    state = current()
    if state.anomaly:  # nodes that the rule makes are told who made them
        token = enter(state.but(origin=node))
        try:
            results = node.backward(grads, targets)
        finally:
            leave(token)
    else:
        results = node.backward(grads, targets)
    if not run.retain_graph:
        node.release()
    if hooks is not None and hooks.post:
        for hook in list(hooks.post.values()):
            before = _versions((*results, *grads))
            changed = hook(tuple(results), tuple(grads))
            _check_unchanged(node, (*results, *grads), before)
            if changed is not None:
                results = _as_list(node, changed, len(targets), "a hook", "inputs")
    if state.anomaly and state.check_nan:
        _check_nan(node, results)
    return results


def _as_list(node: Node, changed: Any, count: int, who: str, what: str) -> list[Any]:
    grads = list(changed) if isinstance(changed, (tuple, list)) else [changed]
    if len(grads) != count:
        raise GradientError(
            f"[{node.name()}] {who} returned {len(grads)} gradients for {count} {what}"
        )
    return grads


def _before(node: Node, grads: list[Any]) -> None:
    """Run the hooks on the node's output gradients, then fill `.grad` of retained tensors."""
    hooks = node.hooks
    assert hooks is not None
    for out, table in list(hooks.tensor.items()):
        for hook in list(table.values()):
            if grads[out] is None:
                break
            _make_private(grads, out)
            changed = hook(grads[out])
            if changed is not None:
                _check_hooked(node, out, changed, "a tensor hook")
                grads[out] = changed
    for out, reference in hooks.capture.items():
        tensor = reference()
        if tensor is not None and grads[out] is not None:
            old = tensor._grad
            tensor._grad = copied(grads[out]) if old is None else _sum(old, grads[out])


def _make_private(grads: list[Any], out: int) -> None:
    """A hook may change its gradient in place, so nobody else may hold the same memory."""
    grad = grads[out]
    array = grad._array
    if (
        array.__class__ is not _ndarray
        or not owns(array)
        or getrefcount(array) > _HELD_TWICE
        or getrefcount(grad) > _HELD_TWICE
    ):
        grads[out] = copied(grad)


def copied(grad: Tensor) -> Tensor:
    """A gradient in memory of its own."""
    return apply(OPS["clone"], (grad,))


def accumulate(node: AccumulateGrad, grad: Any, create_graph: bool) -> None:
    """Add a gradient, a bare array or a Tensor, to the leaf's `.grad`; then its hooks."""
    leaf = node.leaf()
    if leaf is not None and leaf._node is node:  # else nobody sees it, or it was switched off
        bare = grad.__class__ is not Tensor
        if _misfit(leaf._array, grad if bare else grad._array):
            arrived = wrap(grad) if bare else grad
            raise GradientError(
                f"[backward] a gradient of shape {arrived.shape}, {arrived.dtype} on "
                f"{arrived.device} arrived for a leaf of shape {leaf.shape}, {leaf.dtype} on "
                f"{leaf.device}; its data was replaced after the forward"
            )
        with node.lock:
            old = leaf._grad
            if old is None:
                # Note [stealing]: the leaf may keep the array itself only if nobody else holds
                # it: no other edge, saved value or user (the count), no buffer that it is a view
                # of (the base).
                alone = bare and getrefcount(grad) <= _SOLE
                if alone and grad.__class__ is _ndarray and owns(grad):
                    leaf._grad = wrap(grad)
                else:
                    leaf._grad = copied(wrap(grad) if bare else grad)
            elif bare and old._node is None and grad.__class__ is _ndarray and _plain(old._array):
                with np.errstate(all="ignore"):
                    _add(old._array, grad, True)
                share(old).version.value += 1
            else:
                leaf._grad = _sum(old, wrap(grad) if bare else grad)
        if node.post_accumulate:
            for hook in list(node.post_accumulate.values()):
                hook(leaf)


def _misfit(leaf: Any, grad: Any) -> bool:
    return (
        leaf.shape != grad.shape or leaf.dtype != grad.dtype or leaf.__class__ is not grad.__class__
    )


def _plain(array: Any) -> bool:
    """Whether a gradient, which a user may have set, can be added to in place."""
    flags = array.flags
    return flags.forc and flags.writeable


def _probe() -> int:
    """What `getrefcount` says in `accumulate` for an array that only its caller holds."""

    def callee(array: Any) -> int:
        return getrefcount(array)

    array = np.empty(1)
    return callee(array)


def _probe_twice() -> int:
    """What it says for something held by a local and by one other thing, as in `_make_private`."""
    holder = [np.empty(1)]
    array = holder[0]
    return getrefcount(array)


def _probe_cell() -> int:
    """What it says in `_sole` for the value of a slot."""

    def callee(array: Any, _: int) -> int:
        return getrefcount(array)

    cell = Slots(1)
    cell.value = np.empty(1)
    return callee(cell.value, 0)


def _probe_slot() -> int:
    """What it says there for one that a pair to be added holds as well."""

    def callee(array: Any, _: int) -> int:
        return getrefcount(array)

    cell = Slots(1)
    cell.value = np.empty(1)
    pair = (cell.value, None)
    return callee(pair[0], 0)


_SOLE = _probe()
_IN_CELL = _probe_cell()
_IN_SLOT = _probe_slot()
_HELD_TWICE = _probe_twice()


def _wrong_gradient(
    node: Node, result: Any, shape: Any, dtype: Any, who: str = "its rule"
) -> Exception:
    found = (
        f"shape {result.shape} and {result.dtype}"
        if isinstance(result, Tensor)
        else f"type {type(result).__name__}"
    )
    return GradientError(
        f"[{node.name()}] {who} returned a gradient of {found}; expected a Tensor of shape "
        f"{tuple(shape)} and undertow.{dtype.name}"
    )


def _check_nan(node: Node, results: Any) -> None:
    for i, result in enumerate(results):
        if isinstance(result, Tensor):
            host = backend_of(result._array).to_host(result._array)
            if np.isnan(host).any():
                where = (
                    "".join(node.site)
                    if node.site
                    else ("not known: the forward ran outside of detect_anomaly()")
                )
                raise GradientError(
                    f"[{node.name()}] its backward returned NaN in gradient {i}; the forward call "
                    f"that made it:\n{where}"
                )


def _explain(error: BaseException, node: Node) -> None:
    """Tell, once, which node raised and where the forward made it."""
    if any("in the backward of" in note for note in getattr(error, "__notes__", ())):
        return
    if node.site:
        note = f"in the backward of {node.name()}, whose forward call was:\n{''.join(node.site)}"
    else:
        note = (
            f"in the backward of {node.name()}; ut.autograd.detect_anomaly() shows the forward line"
        )
    error.add_note(note)
