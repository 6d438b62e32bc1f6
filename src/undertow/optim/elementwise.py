"""Optimisers whose formula is one of scalars: one kernel changes all parameters and their states.

Note [one formula]
A subclass says three things: which tensors are kept with a parameter (`states`), which numbers
enter the formula in this step (`numbers`), and the formula (`rule`). The rule gets all of them by
name; what there is none of is None, so that options choose among formulas by what they give. It is
called with scalar expressions once, for a kernel that changes parameter and states in one pass
(core/update), and with tensors where the step itself is differentiated (`differentiable=True`).
Numbers are arguments of the kernel: nothing is compiled again when the learning rate changes.
Gradients are turned round for `maximize`, and weights decay, in front of every rule.

Note [sparse gradients]
An optimiser that `takes_sparse` gradients, which `embedding(sparse=True)` gives, applies its rule
to the rows (or elements, as the gradient has them): they are copied out of the parameter and its
states, changed, and copied back. Others stay as they are, states included. A momentum goes on
moving rows which this step's gradient has not: with one, the gradient is made dense.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import chain
from operator import is_, itemgetter
from typing import Any, ClassVar

from ..core.modes import enable_grad, no_grad
from ..core.recording import RECORDERS, recorder
from ..core.tensor import Tensor
from ..core.update import Update
from ..errors import UnsupportedError
from ..ops.create.creation import full, full_like
from ..ops.elementwise.complex_numbers import view_as_complex, view_as_real
from .arguments import as_scalars, scalar_dtype
from .optimizer import Closure, Group, Optimizer

Numbers = dict[str, Any]
Places = tuple[Tensor, ...]  # the positions in each sparse dimension

_set = Update("step", lambda old, new: (new,), 1, 1, (0,))


def _taken(t: Tensor, at: Places) -> Tensor:
    """A copy of the rows or elements at these places."""
    return t.index_select(0, at[0]) if len(at) == 1 else t[at]


def _rows(p: Tensor, grad: Any) -> tuple[Tensor, Tensor, Places]:
    """The rows of a parameter that a sparse gradient has, their gradients, and which they are."""
    found = grad.coalesce()
    at = found.indices().unbind(0)
    return _taken(p.detach(), at), found.values().detach(), at


class Elementwise(Optimizer):
    """Base of the optimisers that change each element by itself; see Note [one formula].

    >>> import undertow as ut
    >>> class SignDescent(ut.optim.elementwise.Elementwise):
    ...     def __init__(self, params, lr=0.1):
    ...         super().__init__(params, {"lr": lr})
    ...
    ...     def numbers(self, group, kept):
    ...         return {"lr": group["lr"]}
    ...
    ...     @staticmethod
    ...     def rule(p, g, *, lr):
    ...         return (p - lr * ut.sign(g),)
    >>> x = ut.tensor([1.0, -1.0], requires_grad=True)
    >>> (x**2).sum().backward()
    >>> SignDescent([x]).step()
    >>> x
    tensor([ 0.9000, -0.9000], requires_grad=True)
    """

    rule: ClassVar[Callable[..., tuple[Any, ...]]]  # p, g, states and numbers: new p and states
    takes_sparse: ClassVar[bool] = False  # see Note [sparse gradients]

    def states(self, group: Group) -> dict[str, float]:
        """The tensors kept with a parameter, and what they are filled with at first."""
        return {}

    def numbers(self, group: Group, kept: Numbers) -> Numbers:
        """The numbers of this step's formula, from the options and from what is kept.

        `kept` has the scalars, where the step is counted already; what is changed in it is kept for
        the next step. It also tells whether this is the parameter's first step (`fresh`), and has
        the `state` of one of the parameters, for who needs more.
        """
        raise NotImplementedError

    def step(self, closure: Closure | None = None) -> Any:
        """Change the parameters once; the value of `closure`, which computes the loss again."""
        # One that acts when `with` does, so that no interrupt comes between and leaves it on.
        with enable_grad() if self.defaults.get("differentiable", False) else no_grad():
            loss = self._evaluate(closure)
            if RECORDERS and recorder() is not None:
                for p in chain.from_iterable(g["params"] for g in self.param_groups):
                    recorder().leaf(p)
                recorder().quietly(self._step_groups)
                return loss
            self._step_groups()
        return loss

    def _step_groups(self) -> None:
        for group in self.param_groups:
            self._step_group(group)

    def _step_group(self, group: Group) -> None:
        states = self.states(group)
        scalars, kept_with = tuple(self.scalars), self.state
        recorded = group.get("differentiable", False)
        entries = len(states) + len(scalars)
        alike: dict[tuple[Any, ...], list[tuple[Tensor, Tensor, dict[str, Any]]]] = {}
        copies: list[tuple[Tensor, Places, Tensor]] = []  # where rows go, which, and what they are
        for p in group["params"]:
            grad = p._grad
            if grad is None:
                continue
            state = kept_with[p] if entries else {}
            fresh = len(state) < entries
            if fresh:
                self._start(p, state, group)
            # Numbers that are equal may yet have gradients of their own.
            key = (id(p) if recorded else 0, fresh, *[state[name].item() for name in scalars])
            if not isinstance(grad, Tensor):
                self._check_sparse(group)
                grad = grad.to_dense() if group.get("momentum") else grad
            if not isinstance(grad, Tensor):
                whole = p
                p, grad, at = _rows(p, grad)
                copies.append((whole, at, p))
                rows = {name: _taken(state[name], at) for name in states}
                copies += [(state[name], at, part) for name, part in rows.items()]
                state = {**state, **rows}
            if key in alike:
                alike[key].append((p, grad, state))
            else:
                alike[key] = [(p, grad, state)]
        for (_, fresh, *counts), members in alike.items():
            kept: Numbers = dict(zip(self.scalars, counts, strict=True))
            if "step" in kept:
                kept["step"] += 1
            kept["fresh"], kept["state"] = fresh, members[0][2]
            asked = None
            if RECORDERS and recorder() is not None:
                asked = Asked(self, group, tuple(states), members)
            self._apply(group, tuple(states), kept, members, asked)
            for name, before in zip(self.scalars, counts, strict=True):
                if isinstance(kept[name], Tensor):
                    members[0][2][name] = kept[name]
                elif asked is not None:
                    recorder().asks(partial(asked.kept, name))
                    _set([(state[name],) for _, _, state in members], (kept[name],))
                elif kept[name] != before:
                    _set([(state[name],) for _, _, state in members], (kept[name],))
        if copies and RECORDERS and recorder() is not None:
            recorder().refuse("sparse gradients")
        for target, at, part in copies:
            if len(at) == 1:
                target.index_copy_(0, at[0], part)
            else:
                target.index_put_(at, part)

    def _check_sparse(self, group: Group) -> None:
        name = self._name
        if not self.takes_sparse:
            raise UnsupportedError(
                f"[{name}] takes no sparse gradients; use SGD, Adagrad or SparseAdam, or "
                "sparse=False where the embedding is made"
            )
        for option in ("weight_decay", "differentiable"):
            if group.get(option):
                raise UnsupportedError(
                    f"[{name}] {option} does not go with sparse gradients, got {group[option]}"
                )

    def _all_numbers(self, options: Group, kept: Numbers) -> Numbers:
        """The numbers of this step's formula, with those of the weights' decay."""
        numbers = self.numbers(options, kept)
        decay = options.get("weight_decay", 0)
        if isinstance(decay, Tensor) or decay != 0:
            if options.get("decoupled_weight_decay"):
                numbers["shrink"] = 1 - options["lr"] * decay
            else:
                numbers["weight_decay"] = decay
        return numbers

    def _apply(
        self,
        group: Group,
        states: tuple[str, ...],
        kept: Numbers,
        members: list[Any],
        asked: Asked | None,
    ) -> None:
        """The formula, for parameters that the numbers are the same of."""
        recorded = group.get("differentiable", False)
        options = group if recorded else _plain(group)
        numbers = self._all_numbers(options, kept)
        cls = type(self)
        maximize = bool(group.get("maximize"))
        if not recorded:
            update = _update(cls, states, tuple(numbers), maximize)
            rows = [_in_parts((p, g, *[state[name] for name in states])) for p, g, state in members]
            if asked is not None:
                asked.names = tuple(numbers)
                recorder().step(asked, rows)
            update(rows, tuple([float(n) for n in numbers.values()]))
            return
        formula = _formula(cls, states, tuple(numbers), maximize)
        if asked is not None:
            recorder().refuse("an optimiser's step that is differentiated")
        for p, g, state in members:
            old = _in_parts((p.clone(), g, *[state[name] for name in states]))
            new = formula(*old, *numbers.values())
            if p.is_complex():
                new = [view_as_complex(value) for value in new]
            p.copy_(new[0])
            state.update(zip(states, new[1:], strict=True))

    def _start(self, p: Tensor, state: dict[str, Any], group: Group) -> None:
        """Make what is kept with a parameter, as far as it is missing."""
        for name, number in self.scalars.items():
            if name not in state:
                state[name] = full((), number, dtype=scalar_dtype())
        for name, number in self.states(group).items():
            if name not in state:
                filled = complex(number, number) if p.is_complex() else number
                state[name] = full_like(p, filled, requires_grad=False)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for kept in self.state.values():
            for name in [n for n, value in kept.items() if value is None]:
                del kept[name]
            as_scalars(kept, self.scalars)


_AHEAD = 16  # more steps than one program makes


class Asked:
    """The numbers of a recorded step, asked for again in each call of a program.

    Rates, betas and so on may change in between; what is changed by which formula may not.
    """

    def __init__(
        self, optimizer: Elementwise, group: Group, states: tuple[str, ...], members: list[Any]
    ) -> None:
        self.optimizer, self.group, self.states = optimizer, group, states
        self.names: tuple[str, ...] = ()
        self._params = [p for p, _, _ in members]
        self._dicts = [state for _, _, state in members]
        names = (*states, *optimizer.scalars)
        self._get = itemgetter(*names) if names else None
        self._tensors = [self._get(d) for d in self._dicts] if self._get else []
        self._counts = {n: [d[n]._array for d in self._dicts] for n in optimizer.scalars}
        self._options = self._described()
        self._groups = self._listed()
        self._kept: Numbers = {}

    def _listed(self) -> list[Any]:
        groups = self.optimizer.param_groups
        hooks = [h for kind in self.optimizer._hooks.values() for h in kind]
        return [(id(g), id(g["params"]), len(g["params"])) for g in groups] + hooks

    def _described(self) -> Any:
        group = self.group
        options = {k: v for k, v in group.items() if k != "params" and not _is_number(v)}
        return options, tuple(self.optimizer.states(group)), type(group["lr"])

    def holds(self) -> bool:
        """Whether a step would still change the same tensors, by the same formula."""
        optimizer = self.optimizer
        if self._listed() != self._groups:
            return False
        try:
            if self._described() != self._options:
                return False
            if self._get is not None:
                get = optimizer.state.get
                if not all(map(is_, map(get, self._params), self._dicts)):
                    return False
                for found, known in zip(map(self._get, self._dicts), self._tensors, strict=True):
                    if found is not known and not all(map(is_, found, known)):
                        return False
        except (KeyError, TypeError, RuntimeError):
            return False
        if any(len({a.item() for a in arrays}) > 1 for arrays in self._counts.values()):
            return False
        # Some begin with another formula: that of the steps to come must be the recorded one.
        return all(tuple(self._numbers(ahead)[0]) == self.names for ahead in (1, _AHEAD))

    def _numbers(self, ahead: int) -> tuple[Numbers, Numbers]:
        """The numbers of a step to come, and what is kept of them."""
        kept: Numbers = {n: arrays[0].item() for n, arrays in self._counts.items()}
        if "step" in kept:
            kept["step"] += ahead
        kept["fresh"], kept["state"] = False, self._dicts[0]
        return self.optimizer._all_numbers(_plain(self.group), kept), kept

    def __call__(self) -> tuple[float, ...]:
        """The numbers of this step."""
        numbers, self._kept = self._numbers(1)
        if tuple(numbers) != self.names:
            raise RuntimeError("[compile] the formula of an optimiser has changed inside a step")
        return tuple([float(n) for n in numbers.values()])

    def kept(self, name: str) -> tuple[float]:
        """What is kept of them for the next step."""
        return (self._kept[name],)


def _is_number(value: Any) -> bool:
    """Whether an option is one of the numbers that are asked for in each step."""
    return value.__class__ is float or (
        value.__class__ is tuple and all(v.__class__ is float for v in value)
    )


def _in_parts(row: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """A parameter and what goes with it; complex ones as their parts, which the formula is for."""
    return tuple(map(view_as_real, row)) if row[0]._array.dtype.kind == "c" else row


def _plain(group: Group) -> Group:
    """The options of a group, with tensors as numbers."""
    found = group
    for name in ("lr", "betas", "weight_decay"):
        value = group.get(name)
        if name == "betas" and value is not None and isinstance(value[0], Tensor):
            found = {**found, name: tuple(beta.item() for beta in value)}
        elif isinstance(value, Tensor):
            found = {**found, name: value.item()}
    return found


def _formula(
    cls: type[Elementwise], states: tuple[str, ...], numbers: tuple[str, ...], maximize: bool
) -> Callable[..., list[Any]]:
    """A rule, with what stands in front of every one, as a function of positions."""

    def formula(p: Any, g: Any, *others: Any) -> list[Any]:
        given = dict(zip((*states, *numbers), others, strict=True))
        if maximize:
            g = -g
        if "shrink" in given:
            p = p * given.pop("shrink")
        elif "weight_decay" in given:
            g = g + given.pop("weight_decay") * p
        return [value for value in cls.rule(p, g, **given) if value is not None]

    return formula


def _update(
    cls: type[Elementwise], states: tuple[str, ...], numbers: tuple[str, ...], maximize: bool
) -> Update:
    """The formula as a change in place; traced once."""
    key = (cls, states, numbers, maximize)
    found = _updates.get(key)
    if found is None:
        formula = _formula(cls, states, numbers, maximize)
        places = (0, *range(2, 2 + len(states)))
        found = Update(cls.__name__, formula, 2 + len(states), len(numbers), places)
        _updates[key] = found
    return found


_updates: dict[Any, Update] = {}
