"""`backward` and `grad`: seeds in, gradients out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..backends.quiet import hush, silent, unhush
from ..backends.registry import backend_of
from ..core.dispatch import apply
from ..core.modes import current, enter, leave, with_grad
from ..core.node import AccumulateGrad, Node
from ..core.op import OPS
from ..core.register import attach
from ..core.tensor import Tensor, node_of, wrap
from ..errors import ArgumentError, GradientError, ShapeError
from . import executors
from .engine import Run, accumulate, copied, deliver
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
    """How many threads a backward pass uses unless it is told otherwise."""
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
        _run(roots, seeds, None, retain_graph, create_graph, workers)
        return
    targets = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    if not targets:
        raise ArgumentError("[backward] inputs is empty; leave it out to reach every leaf")
    for t in targets:
        if not isinstance(t, Tensor) or node_of(t) is None:
            raise GradientError("[backward] every one of the inputs must require gradients")
    found = _run(roots, seeds, targets, retain_graph, create_graph, workers)
    for t, g in {id(t): (t, g) for t, g in zip(targets, found, strict=True)}.values():
        if g is None:
            continue
        node = node_of(t)
        if isinstance(node, AccumulateGrad):
            accumulate(node, g, create_graph)
        elif t._grad is None:
            t._grad = copied(g)
        else:
            t._grad = apply(OPS["add"], (t._grad, g))


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


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
    *,
    workers: int | None = None,
) -> tuple[Any, ...]:
    """The gradients of `outputs` with respect to `inputs`; no `.grad` is touched.

    >>> import undertow as ut
    >>> x = ut.tensor(2.0, requires_grad=True)
    >>> (first,) = ut.autograd.grad(x ** 3, x, create_graph=True)
    >>> ut.autograd.grad(first, x)
    (tensor(12.),)
    """
    if allow_unused is False and materialize_grads:
        raise ArgumentError("[grad] materialize_grads=True needs allow_unused True or left out")
    targets = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    if not targets:
        raise ArgumentError("[grad] inputs is empty")
    for i, t in enumerate(targets):
        if not isinstance(t, Tensor):
            raise GradientError(f"[grad] input {i} is a {type(t).__name__}, expected a Tensor")
        if node_of(t) is None:
            raise GradientError(f"[grad] input {i} of shape {t.shape} does not require gradients")
    roots, seeds = _roots("grad", outputs, grad_outputs)
    found = _run(roots, seeds, targets, retain_graph, create_graph, workers)
    results: list[Tensor | None] = []
    seen = {id(s._array) for s in seeds}
    for i, (t, g) in enumerate(zip(targets, found, strict=True)):
        if g is None:
            if materialize_grads:
                g = wrap(backend_of(t._array).full(t.shape, 0, t._array.dtype))
            elif not allow_unused:
                raise GradientError(
                    f"[grad] input {i} of shape {t.shape} was not used to compute the outputs; "
                    "pass allow_unused=True to get None for it"
                )
        elif g._array.__class__ is t._array.__class__ and id(g._array) in seen:
            g = _apart(g, create_graph)
        if g is not None:
            seen.add(id(g._array))
        results.append(g)
    return tuple(results)


def _apart(g: Tensor, create_graph: bool) -> Tensor:
    """A copy in memory of its own, so that two results never alias."""
    token = enter(current().but(grad=create_graph))
    try:
        return copied(g)
    finally:
        leave(token)


def _roots(op: str, tensors: Any, grads: Any) -> tuple[list[Tensor], list[Tensor]]:
    """The roots and their seeds, checked; nothing has run yet."""
    roots = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not roots:
        raise ArgumentError(f"[{op}] needs at least one tensor to start from")
    if grads is None:
        given: list[Any] = [None] * len(roots)
    else:
        given = [grads] if isinstance(grads, Tensor) else list(grads)
    if len(given) != len(roots):
        raise ArgumentError(f"[{op}] got {len(roots)} tensors but {len(given)} gradients for them")
    seeds = []
    for root, seed in zip(roots, given, strict=True):
        if not isinstance(root, Tensor):
            raise GradientError(f"[{op}] starts from tensors, got {type(root).__name__}")
        if node_of(root) is None:
            raise GradientError(
                f"[{op}] the tensor of shape {root.shape} does not require gradients and has no "
                "grad_fn; set requires_grad on what it is computed from"
            )
        if seed is None:
            if root._array.size != 1:
                raise GradientError(
                    f"[{op}] a gradient is created only for one-element outputs, this one has "
                    f"shape {root.shape}; reduce it with sum() or pass a gradient of that shape"
                )
            seed = wrap(backend_of(root._array).full(root.shape, 1, root._array.dtype))
        else:
            if not isinstance(seed, Tensor):
                raise GradientError(
                    f"[{op}] a gradient is a Tensor or None, got {type(seed).__name__}"
                )
            if seed._array.shape != root._array.shape:
                raise ShapeError(
                    f"[{op}] the gradient has shape {seed.shape}, the tensor {root.shape}"
                )
            if seed._array.dtype != root._array.dtype:
                raise GradientError(
                    f"[{op}] the gradient is {seed.dtype}, the tensor {root.dtype}; cast it first"
                )
            if seed.device != root.device:
                raise GradientError(
                    f"[{op}] the gradient is on {seed.device}, the tensor on {root.device}"
                )
        seeds.append(seed)
    return roots, seeds


def _run(
    roots: list[Tensor],
    seeds: list[Tensor],
    targets: list[Tensor] | None,
    retain_graph: bool | None,
    create_graph: bool,
    workers: int | None,
) -> list[Any]:
    count = _workers if workers is None else _checked_workers(workers)
    starts = [(root._node, root._index) for root in roots]
    captures: Any = None
    wanted = None
    if targets is not None:
        captures = {(node_of(t), t._index) for t in targets}
        wanted = [node for node, _ in captures]
    task = Task(starts, wanted)  # type: ignore[arg-type]
    keep = create_graph if retain_graph is None else retain_graph
    run = Run(task, keep, create_graph, captures)
    state = current()
    if state.plain:
        token = enter(with_grad(state, create_graph))
    else:
        token = enter(state.but(grad=create_graph, inference=False, pack=None, unpack=None))
    hushed = hush(silent)
    try:
        ready: list[int] = []
        for target, seed in zip(task.seeds, seeds, strict=True):
            if target is not None:
                deliver(run, target, seed._array if run.bare else seed, ready)
        if count > 1 and executors.worth_pooling(task):
            executors.run_pooled(run, ready, count)
        else:
            executors.run_serial(run, ready)
    finally:
        unhush(hushed)
        leave(token)
    if targets is None:
        return []
    return [run.captured.get((node_of(t), t._index)) for t in targets]  # type: ignore[arg-type]
