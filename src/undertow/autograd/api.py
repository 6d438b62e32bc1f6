"""`backward` and `grad`: seeds in, gradients out.

Note [zeros]
A derivative that is identically zero is zero, not an error. The third derivative of x*x has no
path to x left, since 2 is a constant; so a result of `grad(create_graph=True)` without a history
gets one, `Zero`, that leads to the inputs with zeros. A result that has a history, but no longer
depends on some of what its root was made of (the biases of a network of relus), remembers its root:
asked for that derivative, `grad` finds the way there, and answers zeros. What is lost is an error
still: a custom backward outside of the library's ops leaves a Barrier, and where a hook gave a
gradient without a history, no zeros are claimed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, overload

from .. import dtypes
from ..backends.batch import Frame, enclosing
from ..backends.quiet import restore, silence
from ..backends.registry import backend_of, backend_on
from ..backends.wrapped import WRAPPERS, WrapperArray
from ..core.batching import into_batch, lifted, out_of_batch
from ..core.dispatch import cast
from ..core.modes import current, enter, leave, with_grad
from ..core.node import AccumulateGrad, Derivative, Node, WrapperNode, Zero
from ..core.other_kinds import OtherKind
from ..core.overriding import ASKING, IN_BACKWARD, covers
from ..core.register import FUNCTIONS, attach
from ..core.tensor import Tensor, node_of, restored, wrap
from ..errors import ArgumentError, DTypeError, GradientError, ShapeError, UnsupportedError
from . import executors, stacks
from .engine import Run, deliver, run_callbacks, running
from .graph import GradientEdge
from .hooks import copied
from .task import Task

_workers = 1


def set_workers(workers: int) -> None:
    """Set how many threads a backward pass uses unless it is told otherwise; 1 is serial.

    >>> import undertow as ut
    >>> ut.autograd.set_workers(2)
    >>> ut.autograd.get_workers()
    2
    >>> ut.autograd.set_workers(1)
    """
    global _workers
    _workers = _checked_workers(workers)


def get_workers() -> int:
    """How many threads a backward pass uses unless it is told otherwise.

    >>> import undertow as ut
    >>> ut.autograd.get_workers()
    1
    """
    return _workers


def _checked_workers(workers: Any) -> int:
    if not isinstance(workers, int) or isinstance(workers, bool) or workers < 1:
        raise ArgumentError(f"[backward] workers must be a positive integer, got {workers!r}")
    return workers


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
    *,
    workers: int | None = None,
) -> None:
    """Add the gradients of `tensors` to the `.grad` of the leaves, or of `inputs` only.

    >>> import undertow as ut
    >>> x = ut.tensor([1.0, 2.0], requires_grad=True)
    >>> ut.autograd.backward((x * x).sum())
    >>> x.grad
    tensor([2., 4.])
    """
    roots, seeds = _roots("backward", tensors, grad_tensors)
    if inputs is None:
        _run(roots, seeds, None, False, retain_graph, create_graph, workers)
        return
    targets = _listed(
        "backward", "inputs", tuple(inputs.values()) if isinstance(inputs, dict) else inputs
    )
    if not targets:
        raise ArgumentError("[backward] inputs is empty; leave it out to reach every leaf")
    edges = [_edge("backward", i, t) for i, t in enumerate(targets)]
    for t in targets:
        if isinstance(t, Tensor):
            t.retain_grad()  # nothing to do for a leaf
    _run(roots, seeds, edges, False, retain_graph, create_graph, workers)


def _method(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
    *,
    workers: int | None = None,
) -> None:
    """Compute the gradients of this tensor and add them to the leaves' `.grad`.

    >>> import undertow as ut
    >>> x = ut.tensor(3.0, requires_grad=True)
    >>> (x * x).backward()
    >>> x.grad
    tensor(6.)
    """
    backward(self, gradient, retain_graph, create_graph, inputs=inputs, workers=workers)


_method.__name__ = _method.__qualname__ = "backward"
attach("backward", _method)


@overload
def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: dict[str, Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
    *,
    workers: int | None = None,
) -> dict[str, Any]: ...
@overload
def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
    *,
    workers: int | None = None,
) -> tuple[Any, ...]: ...
def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor] | dict[str, Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
    *,
    workers: int | None = None,
) -> tuple[Any, ...] | dict[str, Any]:
    """The gradients of `outputs` with respect to `inputs`; no `.grad` is touched.

    Inputs by name, as `dict(model.named_parameters())`, give gradients by name. With
    `is_grads_batched=True` every row of `grad_outputs` is a pass of its own, and the gradients have
    a row for each.

    >>> import undertow as ut
    >>> x = ut.tensor(2.0, requires_grad=True)
    >>> (first,) = ut.autograd.grad(x**3, x, create_graph=True)
    >>> ut.autograd.grad(first, x)
    (tensor(12.),)
    """
    if not only_inputs:
        raise UnsupportedError(
            "[grad] only_inputs=False is not supported; use backward() for the leaves"
        )
    rest = create_graph, only_inputs, allow_unused
    if isinstance(inputs, dict):
        found = grad(
            outputs,
            tuple(inputs.values()),
            grad_outputs,
            retain_graph,
            *rest,
            is_grads_batched,
            materialize_grads,
            workers=workers,
        )
        return dict(zip(inputs, found, strict=True))
    if is_grads_batched:

        def one_row(seeds: Any, retain: bool | None) -> tuple[Any, ...]:
            return grad(
                outputs, inputs, seeds, retain, *rest, False, materialize_grads, workers=workers
            )

        return _by_rows(one_row, grad_outputs, retain_graph)
    if allow_unused is False and materialize_grads:
        raise ArgumentError("[grad] materialize_grads=True needs allow_unused True or left out")
    targets = _listed("grad", "inputs", inputs)
    if not targets:
        raise ArgumentError("[grad] inputs is empty")
    edges = [_edge("grad", i, t) for i, t in enumerate(targets)]
    roots, seeds = _roots("grad", outputs, grad_outputs)
    run = _run(roots, seeds, edges, True, retain_graph, create_graph, workers)
    results: list[Tensor | None] = []
    made = create_graph and _only_rules(run.task)
    given = {node_of(seed) for seed in seeds}
    seen = {_memory(t) for t in (*seeds, *targets) if isinstance(t, Tensor)}
    for i, (t, (node, index)) in enumerate(zip(targets, edges, strict=True)):
        g = run.captured.get((node, index))
        if g is None:
            if materialize_grads and not isinstance(t, Tensor):
                raise GradientError(
                    f"[grad] input {i} is a GradientEdge that the outputs do not depend on, and "
                    "materialize_grads makes zeros for tensors only; give the tensor"
                )
            if materialize_grads or (not allow_unused and _derived_from(roots, node)):
                shape, dtype = node.metas[index]
                like = t if isinstance(t, Tensor) else seeds[0]
                g = wrap(backend_of(like._array).full(shape, 0, dtype))
            elif not allow_unused:
                raise GradientError(
                    f"[grad] input {i} of shape {tuple(node.metas[index][0])} was not used to "
                    "compute the outputs; pass allow_unused=True to get None for it"
                )
        if g is not None:
            place = _memory(g)
            if place in seen:
                g = _apart(g, create_graph)
                place = _memory(g)
            seen.add(place)
            if create_graph and not run.cut:
                g = _varying(g, roots, edges, made and node_of(g) not in given)
            if isinstance(t, OtherKind):
                g = t._gradient(g)
            elif ASKING:
                g = restored(g)
        results.append(g)
    return tuple(results)


def _by_rows(
    one_row: Callable[[Any, bool | None], tuple[Any, ...]],
    grad_outputs: Any,
    retain_graph: bool | None,
) -> tuple[Any, ...]:
    """The gradients for each row of the cotangents, stacked; None where every row has None."""
    seeds = _listed("grad", "grad_outputs", grad_outputs)
    counts = {g.shape[0] if g.ndim else 0 for g in seeds if g is not None}
    if len(counts) != 1 or 0 in counts:
        raise ArgumentError(
            "[grad] is_grads_batched=True needs grad_outputs with equally many rows, at least one; "
            f"got {sorted(counts)} rows"
        )
    (count,) = counts
    try:
        return _at_once(one_row, seeds, count)
    except UnsupportedError:  # something looks at values; see `func.vmap`
        pass
    rows = [
        one_row([None if g is None else g[i] for g in seeds], i < count - 1 or retain_graph)
        for i in range(count)
    ]
    stack = FUNCTIONS["stack"]
    found: list[Any] = []
    for column in zip(*rows, strict=True):
        known = next((g for g in column if g is not None), None)
        if known is None:
            found.append(None)
        else:
            found.append(stack([known.new_zeros(known.shape) if g is None else g for g in column]))
    return tuple(found)


def _at_once(
    one_row: Callable[[Any, bool | None], tuple[Any, ...]], seeds: list[Any], count: int
) -> tuple[Any, ...]:
    """The same of all rows in one pass, as a batch; see Note [batches]."""
    frame = Frame(count, enclosing.get(), "same")
    token = enclosing.set(frame)
    try:
        found = one_row([None if g is None else into_batch(g, frame, 0) for g in seeds], True)
    finally:
        enclosing.reset(token)
    return tuple(None if g is None else out_of_batch(g, frame, 0) for g in found)


def _only_rules(task: Task) -> bool:
    """Whether only rules of ops ran, whose results are new, or a seed passed through.

    Custom functions and hooks may return a tensor that others have.
    """
    own = (Node, WrapperNode, AccumulateGrad, Zero, Derivative)
    return all(node.__class__ in own and node.hooks is None for node in task.nodes)


def _varying(
    g: Tensor, roots: list[tuple[Node, int]], inputs: list[tuple[Node, int]], made: bool
) -> Tensor:
    """A derivative of the roots by the inputs, with a history; see Note [zeros].

    A node that was `made` by this pass keeps its origins itself, for any other one a node does.
    """
    node = node_of(g)
    if isinstance(node, AccumulateGrad):
        return g
    origins = tuple(root for root, _ in roots)
    if node is not None and made:
        node._origins = origins
        return g
    meta = (tuple(g._array.shape), g._array.dtype)
    history = Zero(inputs, meta) if node is None else Derivative(node, g._index, meta)
    history._origins = origins
    return g._attached(history, 0)


def _derived_from(roots: list[tuple[Node, int]], target: Node) -> bool:
    """Whether a root is made of derivatives of something that depends on `target`."""
    origins = _above([node for node, _ in roots])  # a plain way there was gone, and gave None
    seen: set[Node] = set()
    while origins:
        found: list[Node] = []
        for node in origins:
            if node not in seen:
                found += _above([node], seen)
        if target in seen:
            return True
        origins = found
    return False


def _above(nodes: list[Node], seen: set[Node] | None = None) -> list[Node]:
    """The origins of derivatives among all that `nodes` depend on; `seen` gets these."""
    seen = set() if seen is None else seen
    stack = list(nodes)
    seen.update(stack)
    origins: list[Node] = []
    while stack:
        node = stack.pop()
        origins += getattr(node, "_origins", ())
        for parent in node.parents:
            if parent is not None and parent not in seen:
                seen.add(parent)
                stack.append(parent)
    return origins


def _edge(op: str, i: int, t: Any) -> tuple[Node, int]:
    """Where one of the inputs stands in the graph."""
    if isinstance(t, GradientEdge):
        return t.node, t.output_nr
    if isinstance(t, OtherKind):  # a sparse tensor: its values
        t = t._differentiated(op)
    if not isinstance(t, Tensor):
        raise GradientError(f"[{op}] input {i} is a {type(t).__name__}, expected a Tensor")
    node = node_of(t)
    if node is None:
        raise GradientError(f"[{op}] input {i} of shape {t.shape} does not require gradients")
    return node, t._index


def _memory(t: Tensor) -> tuple[Any, int]:
    """What two tensors have in common if they share memory."""
    k = backend_of(t._array)
    return k, k.memory(t._array)


def _apart(g: Tensor, create_graph: bool) -> Tensor:
    """A copy in memory of its own, so that two results never alias."""
    token = enter(current().but(grad=create_graph))
    try:
        return copied(g)
    finally:
        leave(token)


def _listed(op: str, what: str, value: Any) -> list[Any]:
    if isinstance(value, (Tensor, GradientEdge, OtherKind)):
        return [value]
    try:
        return list(value)
    except TypeError:
        raise DTypeError(
            f"[{op}] the {what} are a Tensor or a sequence of them, got {type(value).__name__}"
        ) from None


def _roots(op: str, tensors: Any, grads: Any) -> tuple[list[tuple[Node, int]], list[Tensor]]:
    """The roots and their seeds, checked; nothing has run yet."""
    if tensors.__class__ is Tensor and grads.__class__ is Tensor:  # as below, at less overhead
        node, array, given_array = node_of(tensors), tensors._array, grads._array
        if (
            node is not None
            and given_array.shape == array.shape
            and given_array.dtype is array.dtype
            and given_array.__class__ is array.__class__
            and backend_of(given_array) is backend_of(array)
        ):
            return [(node, tensors._index)], [grads]
    roots = _listed(op, "outputs", tensors)
    if not roots:
        raise ArgumentError(f"[{op}] needs at least one tensor to start from")
    if grads is None:
        given: list[Any] = [None] * len(roots)
    else:
        given = _listed(op, "gradients", grads)
    if len(given) != len(roots):
        raise ArgumentError(f"[{op}] got {len(roots)} tensors but {len(given)} gradients for them")
    starts = []
    seeds = []
    for root, seed in zip(roots, given, strict=True):
        if isinstance(root, OtherKind):
            seed = None if seed is None else root._seed(seed)
            root = root._differentiated(op)
        if isinstance(root, Tensor):
            node = node_of(root)
            if node is None:
                raise GradientError(
                    f"[{op}] the tensor of shape {root.shape} does not require gradients and has "
                    "no grad_fn; set requires_grad on what it is computed from"
                )
            array = root._array
            shape, dtype, backend = array.shape, array.dtype, backend_of(array)
            starts.append((node, root._index))
        elif isinstance(root, GradientEdge):
            shape, dtype = root.node.metas[root.output_nr]
            backend = backend_on(None) if seed is None else backend_of(seed._array)
            starts.append((root.node, root.output_nr))
        else:
            raise GradientError(f"[{op}] starts from tensors, got {type(root).__name__}")
        if seed is None:
            if math.prod(shape) != 1:
                raise GradientError(
                    f"[{op}] a gradient is created only for one-element outputs, this one has "
                    f"shape {tuple(shape)}; reduce it with sum() or pass a gradient of that shape"
                )
            if dtype.kind == "c":
                raise GradientError(
                    f"[{op}] grad can be implicitly created only for real scalar outputs but got "
                    f"{dtype.name}; differentiate its .real or abs(), or pass a gradient"
                )
            if backend is WRAPPERS:  # its class is asked
                seed = FUNCTIONS["ones_like"](root)
            else:
                seed = wrap(backend.full(shape, 1, dtype))
        else:
            seed = _checked_seed(op, seed, shape, dtype, backend)
        seeds.append(seed)
    return starts, seeds


def _checked_seed(op: str, seed: Any, shape: Any, dtype: Any, backend: Any) -> Tensor:
    """A gradient that the user gave, in the dtype of the tensor that it is for."""
    if not isinstance(seed, Tensor):
        raise GradientError(f"[{op}] a gradient is a Tensor or None, got {type(seed).__name__}")
    if seed._array.shape != shape:
        raise ShapeError(
            f"[{op}] the gradient has shape {seed.shape}, the tensor {tuple(shape)}; "
            "they must be the same"
        )
    if backend_of(seed._array) is not backend and WRAPPERS not in (
        backend,
        backend_of(seed._array),
    ):
        if backend_of(seed._array).base is backend.base:  # in `vmap`
            return cast(lifted(seed, backend.frames), dtypes.of_array(dtype))
        raise GradientError(
            f"[{op}] the gradient is on {seed.device}, the tensor on {backend.device}; move it"
        )
    if seed.dtype.is_complex is not (dtype.kind == "c"):
        raise GradientError(
            f"[{op}] the gradient is {seed.dtype}, the tensor undertow.{dtype.name}; a real tensor "
            "has a real gradient, a complex one a complex gradient"
        )
    return cast(seed, dtypes.of_array(dtype))


def _run(
    roots: list[tuple[Node, int]],
    seeds: list[Tensor],
    targets: list[tuple[Node, int]] | None,
    capture: bool,
    retain_graph: bool | None,
    create_graph: bool,
    workers: int | None,
) -> Run:
    outer = running.get()
    if outer is not None and stacks.is_deep():
        return stacks.on_fresh_stack(
            lambda: _run(roots, seeds, targets, capture, retain_graph, create_graph, workers)
        )
    count = _workers if workers is None else _checked_workers(workers)
    wanted = None if targets is None else [node for node, _ in targets]
    captures = set(targets) if capture and targets is not None else None
    task = Task(roots, wanted)
    keep = create_graph if retain_graph is None else retain_graph
    run = Run(task, keep, create_graph, captures)
    if ASKING and (
        any(seed._array.__class__ is WrapperArray for seed in seeds)
        or any(node.__class__ is WrapperNode for node in task.nodes)
    ):
        run.bare = False  # their classes are asked for sums
    state = current()
    inside = (
        with_grad(state, create_graph)
        if state.plain and state.autocast is None
        else state.but(grad=create_graph, inference=False, autocast=None)
    )
    if ASKING:
        inside = inside.but(asks=state.asks | IN_BACKWARD)
    silenced = None
    try:
        running.set(run)
        enter(inside)
        silenced = silence()
        ready: list[int] = []
        for target, seed in zip(task.seeds, seeds, strict=True):
            if target is not None:
                deliver(run, target, seed._array if run.bare else seed, ready)
        if count > 1 and state.threads and executors.worth_pooling(task):
            executors.run_pooled(run, ready, count)
        else:
            executors.run_serial(run, ready)
        if run.callbacks:
            run_callbacks(run)
    finally:
        enter(state)  # not by the token, which an interrupt might have kept from us
        running.set(outer)
        if silenced is not None:
            restore(silenced)
    return run


covers({"backward": backward, "grad": grad})
