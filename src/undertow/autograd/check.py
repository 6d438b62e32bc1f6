"""`gradcheck` and `gradgradcheck`: derivatives against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import dtypes
from ..backends.registry import backend_of, backend_on
from ..core.modes import enable_grad, no_grad
from ..core.tensor import Tensor, wrap
from ..errors import ArgumentError, GradientError
from .api import grad


class GradcheckError(GradientError):
    """The derivative that was computed and the one that was measured differ."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    fast_mode: bool = False,
    seed: int = 0,
) -> bool:
    """Compare the gradients of `func` with central differences; use float64 inputs.

    Slow mode compares the whole Jacobian, fast mode a random projection of it.

    >>> import undertow as ut
    >>> x = ut.tensor([0.5, 2.0], dtype=ut.float64, requires_grad=True)
    >>> ut.autograd.gradcheck(lambda x: x * x * x, (x,))
    True
    """
    given = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    try:
        _check(func, given, eps, atol, rtol, fast_mode, seed)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    fast_mode: bool = False,
    seed: int = 0,
) -> bool:
    """Compare second derivatives: gradcheck of the function that computes the gradients.

    >>> import undertow as ut
    >>> x = ut.tensor([0.5, 2.0], dtype=ut.float64, requires_grad=True)
    >>> ut.autograd.gradgradcheck(lambda x: x * x * x, (x,))
    True
    """
    given = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    wanted = [t for t in given if isinstance(t, Tensor) and t.requires_grad]
    outputs = _differentiable(func(*given))
    if grad_outputs is None:
        random = np.random.default_rng(seed)
        seeds = [
            wrap(backend_of(o._array).from_host(_array(random.standard_normal(o.shape), o)))
            for o in outputs
        ]
    else:
        seeds = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs)
        seeds = [s.detach() for s in seeds]
    for s in seeds:
        s.requires_grad_()

    def first_order(*args: Any) -> tuple[Tensor, ...]:
        values, cotangents = args[: len(given)], args[len(given) :]
        with enable_grad():
            results = _differentiable(func(*values))
            targets = [t for t in values if isinstance(t, Tensor) and t.requires_grad]
            return grad(results, targets, cotangents, create_graph=True, materialize_grads=True)

    if not wanted or not outputs:
        raise ArgumentError("[gradgradcheck] no input requires gradients, or no output has one")
    return gradcheck(
        first_order, [*given, *seeds], eps=eps, atol=atol, rtol=rtol,
        raise_exception=raise_exception, fast_mode=fast_mode, seed=seed,
    )  # fmt: skip


def _array(values: Any, like: Tensor) -> Any:
    return np.asarray(values, like._array.dtype)


def _differentiable(result: Any) -> list[Tensor]:
    outputs = [result] if isinstance(result, Tensor) else list(result)
    return [o for o in outputs if isinstance(o, Tensor) and o.requires_grad]


def _check(
    func: Any, given: list[Any], eps: float, atol: float, rtol: float, fast: bool, seed: int
) -> None:
    wanted = [t for t in given if isinstance(t, Tensor) and t.requires_grad]
    if not wanted:
        raise ArgumentError("[gradcheck] none of the inputs requires gradients")
    for t in wanted:
        if t.dtype is not dtypes.float64:
            raise ArgumentError(
                f"[gradcheck] finite differences need float64 inputs, got {t.dtype}"
            )
    raw = func(*given)
    everything = [raw] if isinstance(raw, Tensor) else [o for o in raw if isinstance(o, Tensor)]
    outputs = [o for o in everything if o.requires_grad]
    random = np.random.default_rng(seed)

    def values() -> list[Any]:
        with no_grad():
            again = func(*given)
        tensors = [again] if isinstance(again, Tensor) else list(again)
        tensors = [t for t in tensors if isinstance(t, Tensor)]
        return [_host(t).copy() for t, o in zip(tensors, everything, strict=True)]

    differentiable = [i for i, o in enumerate(everything) if o.requires_grad]
    constant = [
        i for i, o in enumerate(everything) if not o.requires_grad and o.is_floating_point()
    ]
    for number, t in enumerate(wanted):
        size = t.numel()
        directions = np.eye(size) if not fast else random.standard_normal((1, size))
        if fast and size:
            directions = directions / np.linalg.norm(directions)
        columns = []
        flat = _host(t)
        original = flat.copy()
        for direction in directions if size else ():
            step = eps * direction.reshape(t.shape)
            _put(t, original + step)
            above = values()
            _put(t, original - step)
            below = values()
            _put(t, original)
            for i in constant:
                if not np.allclose(above[i], below[i], atol=atol * eps, equal_nan=True):
                    raise GradcheckError(
                        f"[gradcheck] output {i} does not require gradients but depends on "
                        f"input {number}"
                    )
            columns.append([(above[i] - below[i]) / (2 * eps) for i in differentiable])
        for o_number, output in enumerate(outputs):
            rows = output.numel()
            cotangents = np.eye(rows) if not fast else random.standard_normal((1, rows))
            for row, cotangent in enumerate(cotangents if rows else ()):
                seed_tensor = wrap(
                    backend_of(output._array).from_host(
                        _array(cotangent.reshape(output.shape), output)
                    )
                )
                (analytic,) = grad(
                    output, t, seed_tensor, retain_graph=True, materialize_grads=True
                )
                if analytic._array.shape != t._array.shape:
                    raise GradcheckError(f"[gradcheck] gradient {number} has the wrong shape")
                found = directions @ _host(analytic).reshape(-1) if size else np.zeros(0)
                expected = np.array([np.vdot(cotangent, c[o_number].reshape(-1)) for c in columns])
                if not np.allclose(found, expected, rtol=rtol, atol=atol, equal_nan=True):
                    worst = np.argmax(np.abs(found - expected))
                    raise GradcheckError(
                        f"[gradcheck] input {number}, output {o_number}: the derivative of element "
                        f"{row} by element {worst} is {found[worst]:.8g} by backward but "
                        f"{expected[worst]:.8g} by finite differences"
                    )


def _host(t: Tensor) -> Any:
    return backend_of(t._array).to_host(t._array)


def _put(t: Tensor, value: Any) -> None:
    """Write values without a trace: neither history nor version."""
    backend = backend_on(t.device)
    backend.assign(t._array, backend.from_host(np.ascontiguousarray(value)))
