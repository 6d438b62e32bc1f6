"""L-BFGS, with or without a line search for the strong Wolfe conditions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ..core.modes import enable_grad, no_grad
from ..core.tensor import Tensor
from ..errors import ArgumentError
from ..ops.elementwise.complex_numbers import view_as_real
from ..ops.shape.joining import cat
from .arguments import not_negative
from .optimizer import Closure, Optimizer, ParamsT


class LBFGS(Optimizer):
    """L-BFGS (Liu and Nocedal, 1989): steps along the inverse Hessian, from the last gradients.

    A step evaluates the closure several times, so that it needs one. Complex parameters are
    optimised as their real and imaginary parts.

    Args:
        lr: The length of a step, and where a line search begins.
        max_iter: Directions per call of `step`.
        max_eval: Evaluations per call; five quarters of `max_iter` if not given.
        tolerance_grad: Ends the step at a gradient as small as this.
        tolerance_change: Ends it at a change, of the parameters or the loss, as small as this.
        history_size: How many gradients are kept.
        line_search_fn: "strong_wolfe" or None.

    >>> import undertow as ut
    >>> x = ut.tensor([-1.0, 2.0], requires_grad=True)
    >>> optimizer = ut.optim.LBFGS([x], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
    ...     loss.backward()
    ...     return loss
    >>> for _ in range(3):
    ...     loss = optimizer.step(closure)
    >>> x
    tensor([1.0000, 1.0000], requires_grad=True)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        not_negative("LBFGS", lr=lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ArgumentError(
                "[LBFGS] doesn't support per-parameter options (parameter groups), got "
                f"{len(self.param_groups)} groups"
            )

    @property
    def _params(self) -> list[Tensor]:
        return self.param_groups[0]["params"]

    def _gradient(self) -> Tensor:
        """All gradients as one vector."""
        grads = [p.new_zeros(p.shape) if p.grad is None else p.grad for p in self._params]
        return cat([_parts(g).reshape(-1) for g in grads])

    def _move(self, t: float, direction: Tensor) -> None:
        at = 0
        for p in map(_parts, self._params):
            p.add_(direction[at : at + p.numel()].reshape(p.shape), alpha=t)
            at += p.numel()

    def step(self, closure: Closure | None = None) -> Any:
        """Several steps; the first value of `closure`, which computes loss and gradients."""
        if closure is None:
            raise ArgumentError("[LBFGS] step() needs a closure that computes the loss again")
        with no_grad():
            return self._steps(enable_grad()(closure))

    def _steps(self, closure: Closure) -> Any:
        group = self.param_groups[0]
        lr, max_iter, max_eval = float(group["lr"]), group["max_iter"], group["max_eval"]
        tolerance_change = group["tolerance_change"]
        search = group["line_search_fn"]
        if search not in (None, "strong_wolfe"):
            raise ArgumentError(f"[LBFGS] only 'strong_wolfe' is supported, got {search!r}")
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = closure()
        loss = float(first)
        evaluations = 1
        state["func_evals"] += 1
        g = self._gradient()

        def flat() -> bool:
            return g.abs().max().item() <= group["tolerance_grad"]

        if flat():
            return first
        names = ("d", "t", "prev_flat_grad", "prev_loss")
        d: Any
        before: Any
        d, t, before, loss_before = (state.get(name) for name in names)
        done = 0
        while done < max_iter:
            done += 1
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                d = -g
                state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            else:
                self._remember(state, g - before, d * t, group["history_size"])
                d = _direction(state, g)
            before, loss_before = g.clone(), loss
            t = min(1.0, 1.0 / (g.abs().sum().item() or 1.0)) * lr if state["n_iter"] == 1 else lr
            slope = g.dot(d).item()
            if slope > -tolerance_change:
                break
            used = 0
            if search is not None:
                most = d.abs().max().item()
                here = _Point(0.0, loss, g, slope)
                along = self._line(closure, d)
                found, used = _strong_wolfe(along, here, t, most, max_eval - evaluations)
                t, loss, g = found.t, found.f, found.g
                self._move(t, d)
            else:
                self._move(t, d)
                if done != max_iter:  # else it would be evaluated again by the next call
                    loss, used = float(closure()), 1
                    g = self._gradient()
            evaluations += used
            state["func_evals"] += used
            if (
                done == max_iter
                or evaluations >= max_eval
                or flat()
                or (d * t).abs().max().item() <= tolerance_change
                or abs(loss - loss_before) < tolerance_change
            ):
                break
        state.update(d=d, t=t, prev_flat_grad=before, prev_loss=loss_before)
        return first

    def _line(self, closure: Closure, d: Tensor) -> Callable[[float], _Point]:
        """The loss along a direction, as a function that leaves the parameters as they were."""
        start = [p.clone() for p in self._params]

        def at(t: float) -> _Point:
            self._move(t, d)
            f, g = float(closure()), self._gradient()
            for p, old in zip(self._params, start, strict=True):
                p.copy_(old)
            return _Point(t, f, g, g.dot(d).item())

        return at

    @staticmethod
    def _remember(state: dict[str, Any], y: Tensor, s: Tensor, history: int) -> None:
        """Keep a change of the gradient, and the step that made it, if the curvature allows it."""
        ys = y.dot(s)
        if ys.item() <= 1e-10:
            return
        for name, value in (("old_dirs", y), ("old_stps", s), ("ro", 1.0 / ys)):
            if len(state[name]) == history:
                state[name].pop(0)
            state[name].append(value)
        state["H_diag"] = ys / y.dot(y)


def _parts(t: Tensor) -> Tensor:
    """The tensor, or the real and imaginary parts of a complex one: a view of them."""
    return view_as_real(t) if t.is_complex() else t


def _direction(state: dict[str, Any], g: Tensor) -> Tensor:
    """The inverse Hessian times -g, by the two loops over what is remembered."""
    kept = list(zip(state["old_dirs"], state["old_stps"], state["ro"], strict=True))
    q = -g
    parts = []
    for y, s, ro in reversed(kept):
        parts.append(s.dot(q) * ro)
        q = q - parts[-1] * y
    r = q * state["H_diag"]
    for (y, s, ro), part in zip(kept, reversed(parts), strict=True):
        r = r + (part - y.dot(r) * ro) * s
    return r


class _Point(NamedTuple):
    """A place on the line: how far along, the loss, the gradient, and its slope on the line."""

    t: float
    f: float
    g: Tensor
    slope: float


def _strong_wolfe(
    evaluate: Callable[[float], _Point],
    start: _Point,
    t: float,
    longest: float,
    most: int,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
) -> tuple[_Point, int]:
    """A place that is low enough and flat enough, and how many evaluations it took.

    Nocedal and Wright, Numerical Optimization, algorithms 3.5 (find a bracket) and 3.6 (zoom in).
    """
    limit = -c2 * start.slope

    def high(p: _Point) -> bool:
        return p.f > start.f + c1 * p.t * start.slope

    before, new = start, evaluate(t)
    tries = 0
    done = False
    bracket = [start, new]
    while tries < most:
        if high(new) or (tries > 1 and new.f >= before.f):
            bracket = [before, new]
            break
        if abs(new.slope) <= limit:
            bracket, done = [new], True
            break
        if new.slope >= 0:
            bracket = [before, new]
            break
        t = _cubic(before, new, new.t + 0.01 * (new.t - before.t), new.t * 10)
        before, new = new, evaluate(t)
        tries += 1
        bracket = [start, new]
    evaluations = tries + 1

    def order() -> tuple[int, int]:
        return (0, 1) if bracket[0].f <= bracket[-1].f else (1, 0)

    low, other = order()
    stuck = False
    while not done and tries < most:
        left, right = sorted((bracket[0].t, bracket[1].t))
        if (right - left) * longest < tolerance_change:
            break
        t = _cubic(bracket[0], bracket[1], left, right)
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:  # too near to an end, twice or outright
            if stuck or t >= right or t <= left:
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        new = evaluate(t)
        tries += 1
        evaluations += 1
        if high(new) or new.f >= bracket[low].f:
            bracket[other] = new
            low, other = order()
        else:
            if abs(new.slope) <= limit:
                done = True
            elif new.slope * (bracket[other].t - bracket[low].t) >= 0:
                bracket[other] = bracket[low]
            bracket[low] = new
    return bracket[low], evaluations


def _cubic(a: _Point, b: _Point, left: float, right: float) -> float:
    """Where the cubic through two places with their slopes is lowest, between left and right."""
    if a.t > b.t:
        a, b = b, a
    d1 = a.slope + b.slope - 3 * (a.f - b.f) / (a.t - b.t)
    square = d1**2 - a.slope * b.slope
    d2 = math.sqrt(square) if square >= 0 else math.nan
    if not abs(b.slope - a.slope + 2 * d2) > 0:
        return (left + right) / 2
    t = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    return min(max(t, left), right)
