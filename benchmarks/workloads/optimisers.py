"""A step of Adam: many small parameters, and one large one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._workload import Run, Workload, normal

__all__ = ["OPTIMISERS", "optimisers"]


def optimisers(shapes: Sequence[tuple[int, ...]], name: str = "Adam", **options: Any) -> Any:
    """A step of an optimiser over parameters of these shapes, as a workload's `make`."""

    def make(module: Any) -> Run:
        params = []
        for i, shape in enumerate(shapes):
            p = module.from_numpy(normal(*shape, seed=i)).requires_grad_()
            p.grad = module.from_numpy(normal(*shape, seed=i + len(shapes)))
            params.append(p)
        optimizer = getattr(module.optim, name)(params, **options)

        def run() -> tuple[Any, ...]:
            optimizer.step()
            return tuple(p.detach() for p in params[:8])

        return run

    return make


def _workload(name: str, shapes: Sequence[tuple[int, ...]], elements: int) -> Workload:
    # Parameter, gradient and two averages are read, all but the gradient written.
    return Workload(name, optimisers(shapes), 0.8, 0.6, read=16 * elements, written=12 * elements)


OPTIMISERS = (
    _workload("adam 200 x 64x64", [(64, 64)] * 200, 200 * 64 * 64),
    _workload("adam 4M", [(2048, 2048)], 2048 * 2048),
)
