"""A case: a program as text, and what a library answers to it."""

from __future__ import annotations

import inspect
import re
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import prelude

ERRORS = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError)


@dataclass(frozen=True)
class Line:
    """One statement: `name = code`, or `code` alone for a change in place."""

    name: str
    code: str

    def __str__(self) -> str:
        return f"{self.name} = {self.code}" if self.name else self.code

    def reads(self, name: str) -> bool:
        """Whether the statement uses a variable."""
        return re.search(rf"\b{name}\b", self.code) is not None


@dataclass(frozen=True)
class Case:
    """A program: leaves `x…`, constants `c…`, values `v…`, and how often to differentiate."""

    label: str
    leaves: tuple[Line, ...]  # their code gives arrays
    lines: tuple[Line, ...] = ()
    orders: int = 2
    dtype: str = "float64"
    workers: int = 0
    edge: str = ""  # "each" number of an edge is compared alone, or the "whole"; see `judge.usable`

    def text(self) -> str:
        """The case as a function of the library, the dtype and a step along a random direction."""
        body = ["F = lib.nn.functional", "real = getattr(lib, dtype)"]
        for j, leaf in enumerate(self.leaves):
            moved = f"{leaf.code}, shift, {900 + j}"
            body.append(f"{leaf.name} = lib.tensor(shifted({moved}), dtype=real).requires_grad_()")
        body += [str(line) for line in self.lines]
        names = [line.name for line in self.lines if line.name[:1] == "v"]
        body.append(f"values = {{{', '.join(f'{n!r}: {n}' for n in names)}}}")
        leaves = ", ".join(leaf.name for leaf in self.leaves)
        body.append(f"later = lambda: derivatives(lib, values, [{leaves}], {self.orders}, **how)")
        body.append("return values, later")
        head = "def run(lib, dtype, shift=0.0, **how):\n"
        return head + "".join(f"    {line}\n" for line in body)

    def script(self, wrong: str) -> str:
        """A script that runs the case by itself and shows what both libraries answer."""
        text, how = self.text(), f", workers={self.workers}" if self.workers else ""
        words = re.findall(r"\w+", f"{text} numbers")
        called = [
            inspect.getsource(f) for n, f in vars(prelude).items() if n in words and callable(f)
        ]
        return "\n".join(
            [
                f"# {self.label}: {wrong}",
                "import numpy as np",
                "import torch",
                "import undertow as ut",
            ]
            + ["from typing import Any", "from collections.abc import Callable", ""]
            + [*called, text, f"ours, our_derivatives = run(ut, {self.dtype!r}{how})"]
            + [f"theirs, their_derivatives = run(torch, {self.dtype!r})"]
            + ["theirs |= their_derivatives()", "ours |= our_derivatives()", "for name in theirs:"]
            + ["    print(f'{name}\\n  undertow {ours.get(name)}\\n  torch {theirs[name]}')", ""]
        )

    @property
    def single(self) -> bool:
        """Whether anything is computed in float32."""
        return self.dtype == "float32" or any("float32" in line.code for line in self.lines)


@dataclass
class Answer:
    """What one library says: values, derivatives, and what stopped it."""

    values: dict[str, Any] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)  # dtype and requires_grad
    error: str = ""
    late: bool = False  # whether it came as far as the derivatives

    def largest(self) -> float:
        """The largest number anywhere: rounding errors of the others may come from it."""
        numbers = [v for v in self.values.values() if isinstance(v, np.ndarray) and v.size]
        sizes = [np.abs(v[np.isfinite(v)]).max(initial=0.0) for v in numbers]
        return float(max(sizes, default=0.0))

    def record(self, values: dict[str, Any]) -> None:
        """Copies of tensors, so that nothing later changes them; other values as they are."""
        for name, value in values.items():
            if hasattr(value, "detach"):
                self.values[name] = np.array(value.detach().numpy(force=True))
                dtype = str(value.dtype).rpartition(".")[2]
                self.kinds[name] = f"{dtype}, requires_grad={value.requires_grad}"
            else:
                self.values[name] = value


def answer(case: Case, lib: Any, dtype: str = "", shift: float = 0.0, **how: Any) -> Answer:
    """What a library says to a case."""
    out = Answer()
    room: dict[str, Any] = {**vars(prelude)}
    exec(compile(case.text(), "<case>", "exec"), room)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            values, later = room["run"](lib, dtype or case.dtype, shift, **how)
            out.record(values)
            out.late = True
            out.record(later())
        except ERRORS as error:
            out.error = f"{type(error).__name__}: {error}"
    return out
