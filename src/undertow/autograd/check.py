"""`gradcheck` and `gradgradcheck`: derivatives against finite differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import dtypes
from ..backends.dual import Level
from ..backends.registry import backend_of, backend_on
from ..core.inplace import _overlaps as overlaps
from ..core.modes import enable_grad
from ..core.tensor import Tensor, wrap
from ..errors import ArgumentError, GradientError
from .api import grad
from .forward_mode import dual, tangent


class GradcheckError(GradientError):
    """The derivative that was computed and the one that was measured differ.

    >>> import undertow as ut
    >>> x = ut.tensor([3.0], dtype=ut.float64, requires_grad=True)
    >>> try:
    ...     ut.autograd.gradcheck(lambda x: x.detach() * x, x)  # the derivative is 2x
    ... except ut.autograd.GradcheckError:
    ...     print("the gradient is not the slope")
    the gradient is not the slope
    """


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
    seed: int = 0,
) -> bool:
    """Compare the gradients of `func` with central differences; use float64 or complex128 inputs.

    Inputs of another dtype are taken with a warning: differences of numbers with few digits say
    little unless `eps`, `atol` and `rtol` are much larger. `func` may differentiate inside. Complex
    numbers are varied, and compared, as pairs of real ones.

    Slow mode compares the whole Jacobian, fast mode a random projection of it. Beyond the numbers
    it checks that the function and its backward give the same result twice (within `nondet_tol`),
    that outputs without gradients do not depend on the inputs, that the gradient is the same with
    `create_graph=True`, and (`check_undefined_grad`) that outputs may lack a gradient.
    `check_forward_ad` also compares `jvp`, and `check_batched_grad` a batch of cotangents
    (`is_grads_batched`) with each alone. `check_batched_forward_grad`, `check_grad_dtypes` and
    `masked` are accepted: a batch of tangents is a `jvp` for each, a gradient of the wrong dtype
    is always an error, and of a sparse input the stored values are varied, the others being
    constants.

    >>> import undertow as ut
    >>> x = ut.tensor([0.5, 2.0], dtype=ut.float64, requires_grad=True)
    >>> ut.autograd.gradcheck(lambda x: x * x * x, (x,))
    True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("[gradcheck] there is nothing to check; ask for backward or forward")
    given = _listed(inputs)
    try:
        check = _Check(func, given, eps, atol, rtol, nondet_tol, fast_mode, seed)
        check.repeats()
        check.measure()
        if check_backward_ad:
            check.backward()
            check.recorded_backward()
            if check_undefined_grad:
                check.missing_gradients()
            if check_batched_grad:
                check.batched_backward()
        if check_forward_ad:
            check.forward()
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
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
    seed: int = 0,
) -> bool:
    """Compare second derivatives: gradcheck of the function that computes the gradients.

    The gradients are taken by the inputs and by those `grad_outputs` that require them, by random
    ones if none are given.

    >>> import undertow as ut
    >>> x = ut.tensor([0.5, 2.0], dtype=ut.float64, requires_grad=True)
    >>> ut.autograd.gradgradcheck(lambda x: x * x * x, (x,))
    True
    """
    given = _listed(inputs)
    with enable_grad():
        outputs = [o for o in _outputs(func(*given)) if o.requires_grad]
    if not any(isinstance(t, Tensor) and t.requires_grad for t in given) or not outputs:
        raise ArgumentError("[gradgradcheck] no input requires gradients, or no output has one")
    if grad_outputs is None:
        random = np.random.default_rng(seed)
        seeds = [_random(random, o, gen_non_contig_grad_outputs) for o in outputs]
        for s in seeds:
            s.requires_grad_()
    else:
        seeds = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs)
        seeds = [s.detach().requires_grad_(s.requires_grad) for s in seeds]

    def first_order(*args: Any) -> tuple[Tensor, ...]:
        values, cotangents = args[: len(given)], args[len(given) :]
        with enable_grad():
            results = [o for o in _outputs(func(*values)) if o.requires_grad]
            targets = [t for t in values if isinstance(t, Tensor) and t.requires_grad]
            return grad(results, targets, cotangents, create_graph=True, materialize_grads=True)

    return gradcheck(
        first_order,
        [*given, *seeds],
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        seed=seed,
    )


def _listed(inputs: Any) -> list[Any]:
    """The arguments of the function, given as one tensor or several."""
    alone = isinstance(inputs, Tensor) or isinstance(_values(inputs), Tensor)
    return [inputs] if alone else list(inputs)


def _values(t: Any) -> Any:
    """Of a sparse tensor, which is no Tensor, those that it stores; anything else itself."""
    return getattr(t, "_stored", t)


def _outputs(result: Any) -> list[Tensor]:
    """The tensors that a function returned."""
    listed = result if isinstance(result, (tuple, list)) else [result]
    return [o for o in listed if isinstance(o, Tensor)]


class _Check:
    """One function at one point: what was measured, and what it is compared with."""

    def __init__(
        self,
        func: Callable[..., Any],
        given: list[Any],
        eps: float,
        atol: float,
        rtol: float,
        nondet_tol: float,
        fast: bool,
        seed: int,
    ) -> None:
        self.func, self.given = func, given
        self.eps, self.atol, self.rtol, self.nondet_tol = eps, atol, rtol, nondet_tol
        self.random = np.random.default_rng(seed)
        varied = [_values(t) for t in given]
        self.inputs = [t for t in varied if isinstance(t, Tensor) and t.requires_grad]
        if not self.inputs:
            raise ArgumentError("[gradcheck] none of the inputs requires gradients")
        for i, t in enumerate(self.inputs):
            if t.dtype not in (dtypes.float64, dtypes.complex128):
                warnings.warn(
                    "[gradcheck] finite differences need float64 or complex128 inputs, input "
                    f"{i} is {t.dtype}; expect a failure unless eps, atol and rtol are large",
                    stacklevel=3,
                )
            if overlaps(getattr(t._array, "host", t._array)):
                raise ArgumentError(
                    f"[gradcheck] input {i} of shape {t.shape} is an expanded view whose elements "
                    "cannot be varied one by one; clone() it"
                )
        before = [_host(t).copy() for t in self.inputs]
        with enable_grad():
            result = func(*given)
        everything = _outputs(result)
        if not everything and result != ():  # unbind of an empty dimension returns nothing at all
            raise ArgumentError("[gradcheck] the function returns no tensor to differentiate")
        for i, (t, old) in enumerate(zip(self.inputs, before, strict=True)):
            if not np.array_equal(_host(t), old, equal_nan=True):
                raise ArgumentError(
                    f"[gradcheck] the function changes its input {i} in place; give it a clone()"
                )
        self.everything = everything
        self.numbers = [i for i, o in enumerate(everything) if o.requires_grad]
        self.outputs = [everything[i] for i in self.numbers]
        # The directions in which the inputs are varied, and the cotangents of the outputs: all
        # unit vectors, or one random vector each.
        self.directions = [self._basis(_size(t), fast) for t in self.inputs]
        self.cotangents = [self._basis(_size(o), fast) for o in self.outputs]
        self.columns: list[list[Any]] = []  # by input and output: (direction, element) → change

    def _basis(self, size: int, fast: bool) -> Any:
        if not fast or not size:
            return np.eye(size)
        vector = self.random.standard_normal((1, size))
        return vector / np.linalg.norm(vector)

    def values(self) -> list[Any]:
        """The outputs at the inputs as they are now."""
        with enable_grad():  # the function may differentiate inside
            again = _outputs(self.func(*self.given))
        if len(again) != len(self.everything):
            raise GradcheckError(
                f"[gradcheck] the function returned {len(self.everything)} tensors at first, then "
                f"{len(again)}"
            )
        for i, (first, second) in enumerate(zip(self.everything, again, strict=True)):
            if first.shape != second.shape or first.dtype is not second.dtype:
                raise GradcheckError(
                    f"[gradcheck] output {i} had shape {first.shape} and {first.dtype} at first, "
                    f"then {second.shape} and {second.dtype}; neither may depend on values"
                )
        return [_host(t) if t.dtype.is_differentiable else None for t in again]

    def repeats(self) -> None:
        """The function gives the same result twice."""
        for i, (first, second) in enumerate(zip(self.everything, self.values(), strict=True)):
            if second is not None:
                self._same(f"output {i} of the function", _host(first), second)

    def _same(self, what: str, first: Any, second: Any) -> None:
        if first.shape != second.shape or not np.allclose(
            first, second, rtol=0, atol=self.nondet_tol, equal_nan=True
        ):
            raise GradcheckError(
                f"[gradcheck] {what} is not the same twice: {_short(first)} and {_short(second)}; "
                "seed its randomness inside the function, or raise nondet_tol"
            )

    def measure(self) -> None:
        """The numerical derivative of every output in every direction."""
        for number, (t, directions) in enumerate(zip(self.inputs, self.directions, strict=True)):
            original = _host(t).copy()
            changes = []
            for direction in directions:
                step = self.eps * direction.reshape(original.shape)
                try:
                    _put(t, original + step)
                    above = self.values()
                    _put(t, original - step)
                    below = self.values()
                finally:
                    _put(t, original)
                self._check_constants(number, above, below)
                changes.append(
                    [(above[i] - below[i]).reshape(-1) / (2 * self.eps) for i in self.numbers]
                )
            self.columns.append(
                [
                    np.array([c[k] for c in changes]).reshape(len(changes), _size(o))
                    for k, o in enumerate(self.outputs)
                ]
            )

    def _check_constants(self, number: int, above: list[Any], below: list[Any]) -> None:
        for i, (a, b) in enumerate(zip(above, below, strict=True)):
            if i in self.numbers or a is None:
                continue
            if not np.allclose(a, b, rtol=0, atol=self.atol * self.eps, equal_nan=True):
                worst = float(np.nanmax(np.abs(a - b))) / (2 * self.eps)
                raise GradcheckError(
                    f"[gradcheck] output {i} does not require gradients but changes with input "
                    f"{number}, by {worst:.6g} per unit: its history was lost on the way"
                )

    def backward(self) -> None:
        """Every cotangent's gradient against the measured derivative; and the same twice."""
        for k, output in enumerate(self.outputs):
            for i, t in enumerate(self.inputs):
                found, expected = [], []
                for row, cotangent in enumerate(self.cotangents[k]):
                    (g,) = self._gradient([output], [cotangent], [t])
                    if row == 0:
                        (again,) = self._gradient([output], [cotangent], [t])
                        self._same(f"the gradient of input {i}", g, again)
                    found.append(self.directions[i] @ g.reshape(-1))
                    expected.append(self.columns[i][k] @ cotangent)
                self._compare(i, k, np.array(found), np.array(expected), "backward")

    def recorded_backward(self) -> None:
        """With create_graph=True the rules run as written: the same gradient, by another way."""
        vectors = [self.random.standard_normal(_size(o)) for o in self.outputs]
        if not vectors:
            return
        plain = self._gradient(self.outputs, vectors, self.inputs)
        recorded = self._gradient(self.outputs, vectors, self.inputs, create_graph=True)
        for i, (a, b) in enumerate(zip(plain, recorded, strict=True)):
            self._close(f"the gradient of input {i} with create_graph=True", b, "without", a)

    def missing_gradients(self) -> None:
        """All outputs at once give the sum of each alone, when the others have no gradient."""
        if len(self.outputs) < 2:
            return
        vectors = [self.random.standard_normal(_size(o)) for o in self.outputs]
        together = self._gradient(self.outputs, vectors, self.inputs)
        alone = [
            self._gradient([o], [v], self.inputs)
            for o, v in zip(self.outputs, vectors, strict=True)
        ]
        for i, total in enumerate(together):
            parts = np.sum([a[i] for a in alone], axis=0)
            self._close(f"the gradient of input {i} from all outputs", total, "summed up", parts)

    def batched_backward(self) -> None:
        """A batch of two cotangents gives the gradients that each of them gives alone."""
        for output in self.outputs:
            vectors = [self.random.standard_normal(_size(output)) for _ in range(2)]
            rows = wrap(
                backend_of(output._array).from_host(
                    np.stack([_numbers(v, output) for v in vectors])
                )
            )
            batch = grad(
                output,
                self.inputs,
                rows,
                retain_graph=True,
                is_grads_batched=True,
                materialize_grads=True,
            )
            alone = [self._gradient([output], [v], self.inputs) for v in vectors]
            for i, together in enumerate(batch):
                each = np.stack([a[i] for a in alone])
                self._close(f"the batch of gradients of input {i}", _host(together), "alone", each)

    def forward(self) -> None:
        """J v by forward mode against the measured derivative."""
        for i, t in enumerate(self.inputs):
            found = [self._pushed(t, direction) for direction in self.directions[i]]
            for k, _ in enumerate(self.outputs):
                moved = [self.cotangents[k] @ row[k] for row in found]
                expected = [self.cotangents[k] @ c for c in self.columns[i][k]]
                shape = (len(self.directions[i]), len(self.cotangents[k]))
                self._compare(
                    i, k, np.reshape(moved, shape).T, np.reshape(expected, shape).T, "jvp"
                )

    def _pushed(self, t: Tensor, direction: Any) -> list[Any]:
        """How the outputs change along a direction of one input, which gets a tangent meanwhile."""
        before, level = t._array, Level()
        try:
            t._array = dual(t, _tensor(direction, t), level)
            with enable_grad():
                outputs = _outputs(self.func(*self.given))
            changes = [tangent(outputs[n], level) for n in self.numbers]
        finally:
            t._array = before
            level.end()
        return [
            np.zeros(_size(o)) if change is None else _host(change.detach()).reshape(-1)
            for o, change in zip(self.outputs, changes, strict=True)
        ]

    def _gradient(
        self, outputs: Any, vectors: Any, inputs: Any, create_graph: bool = False
    ) -> list[Any]:
        seeds = [_tensor(v, o) for v, o in zip(vectors, outputs, strict=True)]
        found = grad(
            outputs,
            inputs,
            seeds,
            retain_graph=True,
            create_graph=create_graph,
            materialize_grads=True,
        )
        return [_host(g) for g in found]

    def _close(self, what: str, a: Any, other: str, b: Any) -> None:
        if not np.allclose(a, b, rtol=self.rtol, atol=self.atol, equal_nan=True):
            raise GradcheckError(f"[gradcheck] {what} is {_short(a)}, {other} {_short(b)}")

    def _compare(self, i: int, k: int, found: Any, expected: Any, way: str) -> None:
        """The derivatives of output k by input i; NaN agrees with nothing, as in torch."""
        wrong = ~np.isclose(found, expected, rtol=self.rtol, atol=self.atol)
        if not wrong.any():
            return
        error = np.where(wrong, np.nan_to_num(np.abs(found - expected), nan=np.inf), -1)
        row, column = np.unravel_index(int(np.argmax(error)), error.shape)
        t, output = self.inputs[i], self.outputs[k]
        if error.shape == (_size(output), _size(t)):
            where = (
                f"the derivative of output {self.numbers[k]} at {_place(row, output)} by input {i} "
                f"at {_place(column, t)}"
            )
        else:
            where = f"the derivative of output {self.numbers[k]} by input {i} in a random direction"
        raise GradcheckError(
            f"[gradcheck] {where} is {found[row, column]:.8g} by {way} but "
            f"{expected[row, column]:.8g} by finite differences; {int(wrong.sum())} of "
            f"{wrong.size} derivatives differ by more than rtol={self.rtol:g}, atol={self.atol:g}"
        )


def _place(flat: Any, t: Tensor) -> str:
    """Where the number `flat` of `_host(t)` stands, and which part of a complex one it is."""
    place = np.unravel_index(int(flat), _pairs(t))
    shown = tuple(int(p) for p in place[: t.ndim])
    return f"{shown}{('.real', '.imag')[place[-1]] if t.is_complex() else ''}"


def _short(array: Any) -> str:
    return np.array2string(np.asarray(array), threshold=6, edgeitems=2, precision=6)


def _random(random: Any, like: Tensor, strided: bool) -> Tensor:
    values = random.standard_normal(_pairs(like))
    t = _tensor(values, like)
    if strided and like.ndim:
        host = backend_of(t._array).to_host(t._array)
        wide = wrap(backend_of(t._array).from_host(np.repeat(host[..., None], 2, axis=-1)))
        t = wide[..., 0].detach()
    return t


# Tensors as real numbers: a complex one has a last dimension more, of its two parts.
def _pairs(t: Tensor) -> tuple[int, ...]:
    return (*t.shape, 2) if t.is_complex() else t.shape


def _size(t: Tensor) -> int:
    return t.numel() * (1 + t.is_complex())


def _numbers(values: Any, like: Tensor) -> Any:
    """Real numbers as an array of the shape and dtype of `like`."""
    part = dtypes.real_of(like.dtype).numpy
    real = np.ascontiguousarray(np.reshape(values, _pairs(like)), part)
    return real.view(like._array.dtype)[..., 0] if like.is_complex() else real.reshape(like.shape)


def _tensor(values: Any, like: Tensor) -> Tensor:
    return wrap(backend_of(like._array).from_host(_numbers(values, like)))


def _host(t: Tensor) -> Any:
    host = np.asarray(backend_of(t._array).to_host(t._array))
    if host.dtype.kind == "c":
        host = np.stack([host.real, host.imag], axis=-1)
    return host.astype(np.float64)


def _put(t: Tensor, value: Any) -> None:
    """Write values without a trace: neither history nor version."""
    backend = backend_on(t.device)
    backend.assign(t._array, backend.from_host(_numbers(value, t)))
