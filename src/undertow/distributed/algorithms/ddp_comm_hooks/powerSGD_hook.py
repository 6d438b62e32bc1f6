"""PowerSGD: gradients as products of two thin matrices, which are what travels.

Vogels, Karimireddy and Jaggi, "PowerSGD: practical low-rank gradient compression for distributed
optimization", 2019, with error feedback and a warm start. A matrix M of n rows and m columns is
taken as P Qᵀ, with r columns each:

    P = average of M Q,  made orthonormal        n r numbers travel
    Q = average of Mᵀ P                          m r numbers travel

What is lost, M − P Qᵀ, is added to the gradient of the next step. Vectors, and matrices that would
not become smaller, travel as they are.
"""

from __future__ import annotations

from typing import Any

from ....core.generator import Generator
from ....core.modes import no_grad
from ....core.tensor import Tensor
from ....errors import ArgumentError
from ....ops.create.creation import zeros
from ....ops.linalg.orthogonal import qr
from ....ops.random.random import randn
from ....ops.shape.joining import cat
from ... import functions, groups
from ...reducer import GradBucket
from ...reductions import ReduceOp
from ...work import Future
from .default_hooks import allreduce_hook


class PowerSGDState:
    """What the hook keeps between steps: errors, and the last Q of each bucket.

    The first `start_powerSGD_iter` steps travel whole.
    """

    def __init__(
        self,
        process_group: Any = None,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if matrix_approximation_rank < 1:
            raise ArgumentError(
                f"[PowerSGDState] the rank is at least 1, got {matrix_approximation_rank}"
            )
        if (use_error_feedback or warm_start) and start_powerSGD_iter < 2:
            raise ArgumentError(
                "[PowerSGDState] with error feedback or a warm start, start_powerSGD_iter is at "
                f"least 2, got {start_powerSGD_iter}"
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback = use_error_feedback
        self.warm_start = warm_start
        self.generator = Generator().manual_seed(random_seed)  # the same everywhere
        self.iter = 0
        self.errors: dict[int, list[Tensor]] = {}  # of the matrices in each bucket
        self.qs: dict[int, list[Tensor]] = {}

    def thin(self, gradient: Tensor) -> bool:
        """Whether a gradient travels as two thin matrices."""
        if gradient.ndim < 2:
            return False
        rows, columns = gradient.shape[0], gradient.numel() // gradient.shape[0]
        less = (rows + columns) * self.matrix_approximation_rank * self.min_compression_rate
        return less < rows * columns


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future:
    """Average the gradients approximately; `register_comm_hook(PowerSGDState(None), this)`."""
    begins = state.iter < state.start_powerSGD_iter
    if bucket.is_last():
        state.iter += 1
    if begins:
        return allreduce_hook(state.process_group, bucket)
    group = groups.resolved("powerSGD_hook", state.process_group)
    index, buffer = bucket.index(), bucket.buffer()
    with no_grad():
        gradients = bucket.gradients()
        whole = [g for g in gradients if not state.thin(g)]
        matrices = [g.view(g.shape[0], -1) for g in gradients if state.thin(g)]
        for m, error in zip(matrices, state.errors.get(index, ()), strict=False):
            m.add_(error)
        state.errors[index] = [m.clone() for m in matrices] if state.use_error_feedback else []
        qs = state.qs.get(index) if state.warm_start else None
        if qs is None:
            r = state.matrix_approximation_rank
            shapes = [(m.shape[1], min(r, *m.shape)) for m in matrices]
            qs = [randn(*s, generator=state.generator, dtype=buffer.dtype) for s in shapes]
        flat = _flat([*whole, *(m @ _orthonormal(q) for m, q in zip(matrices, qs, strict=True))])
        work = functions.all_reduce(flat, ReduceOp.AVG, group, True, label=f"P of bucket {index}")

    def finish(future: Future) -> Tensor:
        with no_grad():
            found = future.value()[0]
            place = 0
            for g in whole:
                g.copy_(found[place : place + g.numel()].view(g.shape))
                place += g.numel()
            ps = []
            for m, q in zip(matrices, qs, strict=True):
                size = m.shape[0] * q.shape[1]
                ps.append(_orthonormal(found[place : place + size].view(m.shape[0], q.shape[1])))
                place += size
            second = _flat([m.T @ p for m, p in zip(matrices, ps, strict=True)])
            functions.all_reduce(second, ReduceOp.AVG, group, label=f"Q of bucket {index}")
            place, new = 0, []
            for m, p in zip(matrices, ps, strict=True):
                size = m.shape[1] * p.shape[1]
                q = second[place : place + size].view(m.shape[1], p.shape[1])
                place += size
                m.copy_(p @ q.T)
                new.append(q.clone())
            state.qs[index] = new
            for error, m in zip(state.errors[index], matrices, strict=False):
                error.sub_(m)
        return buffer

    return work.get_future().then(finish)


def _orthonormal(matrix: Tensor) -> Tensor:
    return qr(matrix)[0]


def _flat(tensors: list[Tensor]) -> Tensor:
    return cat([t.reshape(-1) for t in tensors]) if tensors else zeros(0)
