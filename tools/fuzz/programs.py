"""Random programs: arithmetic, views, changes in place, aliases, indices, reductions, products."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import torch

from .case import Case, Line, answer
from .grammar import CHANGES, GROUPS, REFUSED

LARGE = [(331, 317), (1, 100003), (47, 53, 61), (120011,), (7, 11, 37, 41), (1025, 129)]
BOUND = 300.0  # values beyond this make rounding errors, not findings


class Writer:
    """Makes one program: fills templates, and keeps the steps that a library takes."""

    lib: Any = torch

    def __init__(self, seed: int, large: bool) -> None:
        self.random = np.random.default_rng([seed, large])
        self.large = large
        self.dtype = str(self.random.choice(["float32", "float64"]))
        self.constants = 0
        self.shapes: dict[str, tuple[int, ...]] = {}
        shape = self.shape()
        count = int(self.random.integers(1, 4))
        shapes = [shape if j == 0 else self.narrowed(shape) for j in range(count)]
        self.leaves = tuple(
            Line(f"x{j}", f"numbers({seed * 10 + j}{''.join(f', {n}' for n in s)})")
            for j, s in enumerate(shapes)
        )
        self.lines = [Line(f"v{j}", f"x{j} * 1") for j in range(count)]
        self.shapes = {f"v{j}": s for j, s in enumerate(shapes)}

    def shape(self) -> tuple[int, ...]:
        """A shape to begin with."""
        if self.large:
            return LARGE[int(self.random.integers(len(LARGE)))]
        sizes = self.random.choice(
            [0, 1, 2, 3, 4, 5], self.random.integers(0, 5), p=[0.02, 0.18] + 4 * [0.2]
        )
        return tuple(map(int, sizes))

    def narrowed(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape that broadcasts to this one."""
        kept = [1 if self.random.random() < 0.3 else n for n in shape]
        return tuple(
            kept[int(self.random.integers(0, len(kept) + 1)) :]
            if self.random.random() < 0.4
            else kept
        )

    def pick(self, items: Any) -> Any:
        """One of them."""
        return items[int(self.random.integers(len(items)))]

    def constant(self, code: str) -> str:
        """The name of a new constant."""
        self.constants += 1
        self.pending.append(Line(f"c{self.constants}", code))
        return f"c{self.constants}"

    def fill(self, template: str, name: str) -> str:
        """A template with its operands, for the value `name`."""
        shape = self.shapes[name]
        rank = len(shape)
        d = int(self.random.integers(rank)) if rank else 0
        e = int(self.random.integers(rank)) if rank else 0
        n = shape[d] if rank else 1
        a, b = sorted(int(v) for v in self.random.integers(0, n + 1, 2))
        a = min(a, max(n - 1, 0))
        seed = int(self.random.integers(10**6))
        sizes = "".join(f", {s}" for s in shape)
        fits = [v for v, s in self.shapes.items() if broadcast(s, shape) is not None]
        into = [v for v, s in self.shapes.items() if broadcast(s, shape) == shape]
        like = [v for v, s in self.shapes.items() if s == shape]
        width, floats = (shape[-1] if rank else 1), "lib.tensor(numbers({}), dtype=real)"

        def operand(match: re.Match[str]) -> str:
            kind, _, more = match[1].partition(":")
            simple = {"x": name, "d": d, "e": e, "n": n, "a": a, "b": b}
            simple |= {"gram": f"({name}.mT @ {name})", "eye": f"lib.eye({width}, dtype=real)"}
            if kind in simple:
                return str(simple[kind])
            if kind == "k":
                return str(self.random.integers(1, 4))
            if kind == "bool":
                return str(bool(self.random.integers(2)))
            if kind in ("y", "into") and self.random.random() < 0.25:
                other = "".join(f", {s}" for s in self.narrowed(shape))
                return self.constant(floats.format(f"{seed}{other}"))
            if kind in ("y", "into", "like", "any"):
                choice = {"y": fits, "into": into, "like": like, "any": list(self.shapes)}
                return str(self.pick(choice[kind]))
            code = {
                "places": f"places({seed}, {n}, {more.replace(',', ', ')})",
                "rows": f"order({seed}, {shape[0] if rank else 1}, 2)",
                "all": f"places({seed}, {n}, {n})",
                "gather": f"places({seed}, {n}{sizes})",
                "anywhere": f"places({seed}, {int(np.prod(shape))}, 5)",
                "order": f"order({seed}, {n}, {n})",
                "mask": f"flags({seed}{sizes})",
            }
            if kind in code:
                return self.constant(f"lib.tensor({code[kind]})")
            out = f", {self.random.integers(1, 5)}" if kind == "right" else ""
            return self.constant(
                floats.format(f"{seed}, {width}{out}") + f" / {max(width, 1)} ** 0.5"
            )

        return re.sub(r"\{(\w+(?::[\d,]+)?)\}", operand, template)

    def step(self) -> list[Line]:
        """A further statement, with its constants before it."""
        self.pending: list[Line] = []
        name = self.pick(list(self.shapes))
        chance = self.random.random()
        if chance < 0.2:
            self.pending.append(Line("", self.fill("{x}." + self.pick(CHANGES), name)))
            return self.pending
        target = f"v{len(self.lines)}"
        if chance < 0.23:
            code = self.fill(self.pick(REFUSED), name)
            self.pending.append(Line(target, f"refused(lambda: {code})"))
            return self.pending
        names = [n for n in GROUPS if n != "jump" or self.dtype == "float64"]
        weights = np.array([GROUPS[n][0] for n in names])
        group = str(self.random.choice(names, p=weights / weights.sum()))
        self.pending.append(Line(target, self.fill(self.pick(GROUPS[group][1]), name)))
        return self.pending

    def case(self, label: str, orders: int) -> Case:
        """The program so far."""
        workers = 2 if self.random.random() < 0.3 else 0
        return Case(label, self.leaves, tuple(self.lines), orders, self.dtype, workers)

    def grow(self, steps: int) -> None:
        """Add statements that the library takes and that keep the numbers ordinary."""
        for _ in range(steps):
            lines = [*self.lines, *self.step()]
            trial = Case("", self.leaves, tuple(lines), 0)
            got = answer(trial, self.lib)
            if got.error or not all(map(ordinary, got.values.values())):
                continue
            new = got.values.get(lines[-1].name)
            if lines[-1].code.startswith("refused") and new is False:
                continue  # torch takes it after all: a step like any other, and its value is lost
            self.lines = lines
            self.shapes = {
                name: value.shape
                for name, value in got.values.items()
                if isinstance(value, np.ndarray) and value.dtype.kind == "f"
            }


def ordinary(value: Any) -> bool:
    """Whether a value is finite, of moderate size, and no larger than we have time for."""
    if not isinstance(value, np.ndarray):
        return not hasattr(value, "__len__")
    return value.size < 400_000 and bool(np.all(np.abs(value) < BOUND))


def broadcast(one: tuple[int, ...], two: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape that two shapes broadcast to, if they do."""
    try:
        return np.broadcast_shapes(one, two)
    except ValueError:
        return None


def make(seed: int) -> Case:
    """The program of a seed: one in eight is large enough for generated kernels."""
    large = seed % 8 == 7
    writer = Writer(seed, large)
    writer.grow(int(writer.random.integers(2, 6 if large else 10)))
    orders = int(writer.random.choice([1, 2, 3], p=[0.2, 0.6, 0.2]))
    return writer.case(f"programs, seed {seed}", min(orders, 2) if large else orders)
