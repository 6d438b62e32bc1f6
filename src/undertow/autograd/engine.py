"""The steps of a backward pass: take what arrived at a node, run its hooks and rule, deliver.

Every executor runs exactly this code; they only choose the thread. The lock guards the task's
state and is never held while anything is computed.

Where to look: the **backward** of a node is `_fused_step` or `_rule_step`, or `_full_step` with all
that a node can have besides; the **order** is `advance` (who is ready runs, newest first) and the
task's slots; the **accumulation** is `deliver` on the way and `accumulate` at a leaf.

Note [bare gradients]
In a first-order pass (`create_graph=False`) gradients travel as bare arrays, and a node whose rule
is fused (Note [fused rules]) or bare (Note [bare rules]) never sees a Tensor. Rules as written,
hooks and captures get the array wrapped in one. With `create_graph=True` gradients are Tensors
throughout.

Note [added products]
Where a weight is used twice, its gradient is a sum of products. A matrix product can add to what is
there as it stores its result, so the second one is not made apart and added in another pass over
both. That is only done where it gives the very bits of the other way, which a pass with several
threads takes: there a gradient may come before its turn.

Note [stealing]
A leaf may keep the very array that arrived as its `.grad`, and a sum may be added to in place, only
if nobody else holds it: no other edge, saved value or user, nor a view of its memory. The backend
tells (`owned`), about an array that stands in a list; so whoever asks holds it nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from ..backends.batch import towering
from ..backends.dual import LEVELS, primal_of
from ..backends.locks import Lock
from ..backends.registry import OF_CLASS, backend_of
from ..backends.strided import memory_order
from ..backends.wrapped import WRAPPERS
from ..core.dispatch import cast
from ..core.fused import Prepared
from ..core.modes import current, enter, leave
from ..core.node import AccumulateGrad, Node
from ..core.overriding import of_user
from ..core.recording import RECORDERS, recorder
from ..core.tensor import Tensor, restored, share, wrap
from ..errors import GradientError
from ..kernel.expr import trace
from .hooks import (
    adapted,
    check_returned,
    copied,
    cuts,
    run_posthooks,
    run_prehooks,
    run_tensor_hooks,
    summed,
)
from .task import Slots, Target, Task

_SUM = Prepared((trace(lambda a, b: a + b, 2),), (True, True), True)


class Run:
    """A task with what its caller wants from it."""

    __slots__ = (
        "__weakref__",
        "alone",
        "bare",
        "callbacks",
        "captured",
        "captures",
        "create_graph",
        "cut",
        "lock",
        "plain",
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
        self.cut = False  # a hook gave a gradient without a history
        self.bare = not create_graph and not LEVELS  # tangents are those of tensors
        self.plain = not current().anomaly
        self.callbacks: list[Callable[[], Any]] = []  # for its end


running: ContextVar[Run | None] = ContextVar("undertow_running", default=None)  # the innermost


def queue_callback(callback: Callable[[], Any]) -> None:
    """Call a function at the end of the backward pass that is running; for hooks and Functions."""
    run = running.get()
    if run is None:
        raise GradientError(
            "[queue_callback] no backward pass is running here; call it in a hook or a backward"
        )
    run.callbacks.append(callback)


def run_callbacks(run: Run) -> None:
    """Those that were queued, and those that they queue."""
    while run.callbacks:
        of_user(run.callbacks.pop(0))


def advance(run: Run, ready: list[int], limit: int) -> None:
    """Run up to `limit` of the ready nodes, newest first; those they make ready join the list."""
    task = run.task
    nodes, inbox, targets = task.nodes, task.inbox, task.targets
    bare, plain, captures = run.bare, run.plain, run.captures
    while ready and limit:
        limit -= 1
        i = ready.pop()
        node = nodes[i]
        try:
            g = inbox[i]
            if (
                node.__class__ is Node
                and node.hooks is None
                and plain
                and g is not None
                and g.__class__ is not list
            ):
                inbox[i] = None
                row = targets[i]
                if captures is not None:
                    if (node, 0) in captures:
                        run.captured[node, 0] = wrap(g) if bare else g
                    if not any(row):
                        continue
                if bare:
                    fused = node.plan._fused
                    if fused is False:
                        fused = node.plan.fused
                    if fused is not None:
                        _fused_step(run, node, fused, g, row, ready)
                        continue
                    g = wrap(g)
                _rule_step(run, node, g, row, ready)
            elif node.__class__ is AccumulateGrad and node.hooks is None and g is not None:
                if captures is None:
                    g = None  # the leaf may keep it, if nobody else has it
                    accumulate(node, task.take(i), bare)
                else:
                    inbox[i] = None
                    if (node, 0) in captures:
                        run.captured[node, 0] = wrap(g) if bare else g
            else:
                g = None
                _full_step(run, i, node, ready)
        except BaseException as error:
            _explain(error, node)
            raise


def _fused_step(
    run: Run, node: Node, fused: Any, g: Any, row: list[Target | None], ready: list[int]
) -> None:
    """The gradients by rules on bare arrays; see Note [fused rules] and Note [bare rules]."""
    if node.saved is None:
        raise node.freed()
    if fused.adds and run.alone:
        row = _add_products(run, node, g, row, ready)
    results = fused.gradients(g, node, row)
    if node.plan.tensors and not run.retain_graph:
        node.saved = None
    task = run.task
    inbox = task.inbox
    for target, result in zip(row, results):  # noqa: B905 (hot)
        if target is None:
            continue
        j = target[0]
        cell = inbox[j]
        if cell is None:  # one output, one edge: nobody else delivers here
            inbox[j] = result
            ready.append(j)
        elif (
            cell.__class__ is Slots
            and cell.owned
            and cell.next == target[2]
            and run.alone
            and result is not None
            and not cell.pending
        ):  # `deliver`, without the lock that nobody contends for
            (OF_CLASS.get(result.__class__) or result.backend).add_into(cell.value, result)
            cell.next += 1
            if cell.next == cell.total:
                _completed(task, j, 0, ready)
        else:
            deliver(run, target, result, ready)


def _rule_step(run: Run, node: Node, g: Tensor, row: Any, ready: list[int]) -> None:
    """A rule as written, of a node with one output and nothing besides."""
    results = node.backward([g], row)
    if not run.retain_graph:
        node.release()
    _deliver_all(run, node, row, results, ready)


def _full_step(run: Run, i: int, node: Node, ready: list[int]) -> None:
    """Hooks, captures, leaves, several outputs, anomaly mode: everything that a node can have."""
    task = run.task
    grads = task.take(i)
    hooks = node.hooks
    leaf = isinstance(node, AccumulateGrad)
    private = [False] * len(grads)
    if run.bare and (not leaf or hooks is not None or run.captures is not None):
        if hooks is not None:
            every = range(len(grads))
            private = [grads[j] is not None and backend_of(grads[j]).owned(grads, j) for j in every]
        grads = [None if grad is None else wrap(grad) for grad in grads]
    if hooks is not None and run_tensor_hooks(node, grads, private):
        run.cut = True  # not by |=, which another thread may come between
    if run.captures is not None:
        for out, grad in enumerate(grads):
            if grad is not None and (node, out) in run.captures:
                run.captured[node, out] = grad
    if leaf:
        if run.captures is None and grads[0] is not None:
            _arrive(run, node, grads)  # type: ignore[arg-type]
        return
    targets = task.targets[i]
    if not any(targets):
        if hooks is not None and run.captures is None:  # of an input of backward(inputs=[…])
            run_posthooks(node, [None] * len(targets), run_prehooks(node, grads))
        return
    results = _gradients(run, node, grads, targets)
    del grads
    _deliver_all(run, node, targets, results, ready)


def _arrive(run: Run, node: AccumulateGrad, grads: list[Any]) -> None:
    """The gradient of a leaf, between the hooks of its node."""
    hooks = node.hooks
    if hooks is None:
        accumulate(node, grads, run.bare)
        return
    if hooks.pre:
        grads[:] = run_prehooks(node, grads)
    given = tuple(grads) if hooks.post else ()
    if grads[0] is not None:
        if run.bare:
            grads[0] = grads[0]._array  # no Tensor holds it now, unless a hook kept that
        accumulate(node, grads, run.bare)
    if given:
        for hook in list(hooks.post.values()):
            changed = of_user(hook, (), given)
            if changed is not None:
                check_returned(node, changed, 0, "a hook", "inputs")


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
                if array is not None and _keeps_dtype(task, target[0]):
                    dtype = array.dtype
                result = adapted(node, result, shape, dtype)
                array = result._array
            if run.bare:
                result = array
            del array
        deliver(run, target, result, ready)


def _keeps_dtype(task: Task, j: int) -> bool:
    """Whether a gradient of any dtype may arrive, alone, at a leaf that keeps its dtype."""
    node = task.nodes[j]
    return isinstance(node, AccumulateGrad) and node.grad_dtype is None and task.inbox[j] is None


def deliver(run: Run, target: Target, grad: Any, ready: list[int]) -> None:
    """Put a gradient into its slot, add what can be added, note the node if it became ready."""
    task = run.task
    j, out, slot = target
    cell = task.inbox[j]
    if cell.__class__ is list:
        outputs, cell = cell, cell[out]
        if cell.__class__ is not Slots:
            with run.lock:
                outputs[out] = grad
                _completed(task, j, out, ready)
            return
    elif cell is None:
        task.inbox[j] = grad
        ready.append(j)
        return
    with run.lock:
        pair = cell.offer(slot, grad)
        if pair is None:
            if cell.next == cell.total:
                _completed(task, j, out, ready)
            return
    del grad
    while pair is not None:
        total = _add(pair, cell.owned) if run.bare else summed(*pair)
        with run.lock:
            pair = cell.settle(total)
            if pair is None and cell.next == cell.total:
                _completed(task, j, out, ready)


def _completed(task: Task, j: int, out: int, ready: list[int]) -> None:
    """All gradients of an output have arrived."""
    cell = task.inbox[j]
    if cell.__class__ is Slots:  # of a node with one output
        task.inbox[j] = cell.value
        cell.value = None
        ready.append(j)
    else:
        task.awaited[j].remove(out)
        if not task.awaited[j]:
            ready.append(j)


def _add(pair: list[Any], owned: bool) -> Any:
    """The sum of two bare gradients; in place when nobody else has the first one."""
    k = backend_of(pair[0])
    if backend_of(pair[1]) is not k:  # in `vmap`
        k = towering(pair)
        return k.prepare(_SUM.exprs, _SUM.arrays)(*pair)
    if owned or k.owned(pair, 0):
        k.add_into(*pair)
        return pair[0]
    return _SUM.of(pair[0])(*pair)


def _add_products(run: Run, node: Node, g: Any, row: Any, ready: list[int]) -> Any:
    """Add the node's gradients to those that are there already, if they are products.

    Returns the row of targets without those that are done; see Note [added products].
    """
    inbox, plan, saved = run.task.inbox, node.plan, node.saved
    left = None
    for i, target in enumerate(row):
        cell = None if target is None else inbox[target[0]]
        if cell.__class__ is not Slots:
            continue
        if (
            len(g.shape) != 2
            or cell.value is None
            or cell.next != target[2]
            or cell.pending
            or cell.busy
        ):
            continue
        assert plan.op.factors is not None
        factors = plan.op.factors[i]
        if factors is None:
            continue
        other = saved[plan.calls[i][1][0]]
        if other._alias is not None:
            continue  # its version is to be checked, or hooks keep it
        k = backend_of(g)
        held = [cell.value]
        cell.value = None
        added = (cell.owned or k.owned(held, 0)) and k.add_product(
            held[0], *factors(k, g, other._array)
        )
        cell.value = held[0]
        if added:
            left = list(row) if left is None else left
            left[i] = None
            cell.owned = True
            cell.next += 1
            if cell.next == cell.total:
                _completed(run.task, target[0], 0, ready)
    return row if left is None else left


def _gradients(run: Run, node: Node, grads: list[Any], targets: Any) -> Any:
    """The gradients of a node's inputs by its rule, between its hooks."""
    hooks = node.hooks
    if hooks is not None:
        arrived, grads = grads, run_prehooks(node, grads)
        if cuts(arrived, grads):
            run.cut = True
    missing = sum(g is None for g in grads)
    state = current()
    if missing == len(grads) and not node.runs_empty:
        results = [None] * len(targets)
    else:
        given = node.materialize(grads) if missing else grads
        if state.anomaly:  # nodes that the rule makes are told who made them
            token = enter(state.but(origin=node))
            try:
                results = node.backward(given, targets)
            finally:
                leave(token)
        else:
            results = node.backward(given, targets)
        if not run.retain_graph:
            node.release()
    if hooks is not None:
        made, results = results, run_posthooks(node, results, grads)
        if cuts(made, results):
            run.cut = True
    if state.anomaly and state.check_nan:
        _check_nan(node, results)
    return results


def accumulate(node: AccumulateGrad, arrived: list[Any], bare: bool) -> None:
    """Add the one gradient in a list, bare or not, to the leaf's `.grad`; then its hooks."""
    leaf = node.leaf()
    if RECORDERS and leaf is not None and recorder() is not None:
        recorder().leaf(leaf)
    if leaf is not None and leaf._node is node:  # else nobody sees it, or it was switched off
        own = leaf._array
        dtype = own.dtype if node.grad_dtype is False else _as_wanted(node, leaf, arrived, bare)
        array = arrived[0] if bare else arrived[0]._array
        k = OF_CLASS.get(array.__class__) or array.backend
        if (
            array.shape != own.shape
            or array.dtype != dtype
            or ((OF_CLASS.get(own.__class__) or own.backend) is not k and not _alike(array, own))
        ):
            raise _misfit(leaf, wrap(array))
        del array
        with node.lock:
            old = leaf._grad
            if k is WRAPPERS:
                leaf._grad = restored(
                    arrived[0].clone() if old is None else summed(old, arrived[0])
                )
            elif old is None:
                if bare and k.owned(arrived, 0):
                    leaf._grad = wrap(arrived[0])
                else:
                    leaf._grad = copied(wrap(arrived[0]) if bare else arrived[0])
            elif bare and _addable(k, old):
                k.add_into(old._array, arrived[0])
                share(old).version.value += 1
            else:
                leaf._grad = summed(old, wrap(arrived[0]) if bare else arrived[0])
        if node.post_accumulate:
            for hook in list(node.post_accumulate.values()):
                if of_user(hook, leaf) is not None:
                    raise GradientError(
                        "[backward] a post-accumulate hook of a leaf of shape "
                        f"{leaf.shape} returned a value, which nobody would use; return None, and "
                        "change tensor.grad instead"
                    )


def _alike(a: Any, b: Any) -> bool:
    """Whether two arrays are of one backend but for their tangents, or one is a wrapper's."""
    if WRAPPERS in (backend_of(a), backend_of(b)):
        return True
    return backend_of(primal_of(a)) is backend_of(primal_of(b))


def _as_wanted(node: AccumulateGrad, leaf: Tensor, arrived: list[Any], bare: bool) -> Any:
    """Cast a gradient to the leaf's `grad_dtype`, or to that of the gradient that is there."""
    old: Any = leaf._grad
    wanted: Any = node.grad_dtype if old is None else old.dtype
    if wanted is not None:
        given = wrap(arrived[0]) if bare else arrived[0]
        if given.dtype is not wanted:
            found = cast(given, wanted)
            arrived[0] = found._array if bare else found
    return (arrived[0] if bare else arrived[0]._array).dtype


def _addable(k: Any, old: Tensor) -> bool:
    """Whether a gradient, which a user may have set, can be added to in place."""
    array = getattr(old, "_array", None)  # a sparse one has none
    if array is None or old._node is not None or old.is_inference() or backend_of(array) is not k:
        return False
    dense = k.contiguous(array) or memory_order(array.shape, array.strides, array.dtype.itemsize)
    return bool(dense) and k.writable(array)


def _misfit(leaf: Tensor, arrived: Tensor) -> GradientError:
    return GradientError(
        f"[backward] a gradient of shape {arrived.shape}, {arrived.dtype} on {arrived.device} "
        f"arrived for a leaf of shape {leaf.shape}, {leaf.dtype} on {leaf.device}; its data was "
        "replaced after the forward"
    )


def _check_nan(node: Node, results: Any) -> None:
    for i, result in enumerate(results):
        if isinstance(result, Tensor) and bool(result.isnan().any()):
            where = (
                "".join(node.site)
                if node.site
                else "not known: the forward ran outside of detect_anomaly()"
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
