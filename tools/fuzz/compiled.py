"""Random programs under `ut.compile`, call after call beside an eager twin, compared bit by bit.

The steps are those of `programs`. Some leaves are arguments, some stay outside; both are changed in
place, lie in all manners in memory, and are sometimes exchanged between calls. The memory of a
program is filled with NaN before each call. Eager calls take kernels (`UNDERTOW_KERNELS=always`).
"""

from __future__ import annotations

import re
import textwrap
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

import undertow as ut

from . import prelude
from .case import ERRORS, Line
from .case import Case as Plain
from .programs import Writer

ENVIRONMENT = {"UNDERTOW_KERNELS": "always"}
CALLS = 11
# What is never a program: sizes that depend on data, and questions about memory.
_REFUSED = re.compile(r"masked_select|\[\{x\} > 0\]|\[\{mask\}\]|as_strided|refused|requires_grad_")
MODES = ("plain", "grad", "history")


@dataclass(frozen=True)
class Case(Plain):
    """A program that is compiled; `mode` tells where gradients are asked for."""

    mode: str = "plain"
    seed: int = 0
    outside: frozenset[str] = frozenset()  # leaves that are no arguments

    def text(self) -> str:
        """The case as a function that makes a step, and the leaves that stay outside."""
        head = ["F = lib.nn.functional", "real = getattr(lib, dtype)"]
        asked = self.mode != "plain"
        for leaf in self.leaves:
            if leaf.name in self.outside:
                grad = ".requires_grad_()" if asked else ""
                head.append(f"{leaf.name} = lib.tensor({leaf.code}, dtype=real){grad}")
        head += [str(line) for line in self.lines if line.name[:1] == "c"]
        names = [line.name for line in self.lines if line.name[:1] == "v"]
        body = [str(line) for line in self.lines if line.name[:1] != "c"]
        arguments = [leaf.name for leaf in self.leaves if leaf.name not in self.outside]
        leaves = ", ".join(leaf.name for leaf in self.leaves)
        if self.mode == "grad":
            fresh = [f"{name} = {name}.detach().requires_grad_()" for name in arguments]
            body = [*fresh, *body, "total = 0.0", f"for v in [{', '.join(names)}]:"]
            body += ["    if v.is_floating_point() and v.requires_grad:"]
            body += ["        total = total + (v * v * 0.1 + v).sum().double()"]
            body += [f"grads = lib.autograd.grad(total, [{leaves}], allow_unused=True)"]
            body += [f"return [v.detach() for v in [{', '.join(names)}]], grads"]
        elif self.mode == "history":
            # One result: with several, what is outside decides in which order gradients are summed.
            body += [f"return [{names[-1]} * 1.0], ()"]
        else:
            body += [f"return [v.clone() for v in [{', '.join(names)}]], ()"]
        inner = "\n".join([f"def step({', '.join(arguments)}):", *[f"    {b}" for b in body]])
        outside = ", ".join(f"{name!r}: {name}" for name in sorted(self.outside))
        lines = [*head, *inner.splitlines(), f"return step, {{{outside}}}"]
        return "def make(lib, dtype):\n" + "".join(f"    {line}\n" for line in lines)

    def script(self, wrong: str) -> str:
        """A script that runs the case by itself: from `tools`, with UNDERTOW_KERNELS=always."""
        return (
            f"# {self.label}: {wrong}\nfrom fuzz.compiled import *\n\n"
            f"case = {self!r}\nprint(case.text())\nprint(verdict(case))\n"
        )


class _Writer(Writer):
    """Writes steps that we take, with leaves that may be changed themselves."""

    lib = ut

    def step(self) -> list[Line]:
        while True:
            try:
                lines = super().step()
            except (IndexError, ValueError):
                continue
            if not any("refused" in line.code for line in lines):
                return lines

    def fill(self, template: str, name: str) -> str:
        while _REFUSED.search(template):
            template = "{x}.mul_(2)" if template.startswith("{x}.") else "{x} * 2"
        return super().fill(template, name)


def make(seed: int) -> Case:
    """The program of a seed."""
    writer = _Writer(seed, False)
    mode = str(writer.random.choice(MODES, p=[0.5, 0.3, 0.2]))
    if mode == "plain":
        writer.lines = [Line(line.name, line.name.replace("v", "x")) for line in writer.lines]
    writer.grow(int(writer.random.integers(2, 14)))
    names = [leaf.name for leaf in writer.leaves]
    outside = frozenset(n for n in names[1:] if writer.random.random() < 0.5)
    return Case(
        f"compiled, seed {seed}",
        writer.leaves,
        tuple(writer.lines),
        0,
        writer.dtype,
        mode=mode,
        seed=seed,
        outside=outside,
    )


def verdict(case: Case) -> str:
    """What differs between compiled calls and eager ones; "" if nothing does."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return _verdict(case)


programs = 0  # how many cases became one


def _verdict(case: Case) -> str:
    global programs
    room: dict[str, Any] = {**vars(prelude)}
    exec(compile(case.text(), "<case>", "exec"), room)
    try:
        (eager, kept), (step, others) = (room["make"](ut, case.dtype) for _ in range(2))
    except ERRORS:
        return ""
    compiled = ut.compile(step)
    shapes = [np.shape(eval(leaf.code, room)) for leaf in case.leaves]
    given = [s for s, leaf in zip(shapes, case.leaves, strict=True) if leaf.name not in kept]
    draw = np.random.default_rng(case.seed)
    manner = int(draw.integers(6))
    same: list[Any] = []
    ran = False
    for call in range(CALLS):
        for name in kept:  # somebody changes what is outside, or puts something else there
            chance = draw.random()
            new = draw.standard_normal(kept[name].shape).astype(case.dtype)
            for t in (kept[name], others[name]):
                if chance < 0.1:
                    t.data = ut.tensor(new)
                elif chance < 0.2:
                    t.data.copy_(ut.tensor(new))
        fresh = [draw.standard_normal(s).astype(case.dtype) for s in given]
        pairs: list[Any] = []
        for twin in range(2):
            if manner == 1 and len(same) == 2:
                for t, new in zip(same[twin], fresh, strict=True):
                    t.copy_(ut.tensor(new))
                pairs.append(same[twin])
            else:
                pairs.append([_laid(new, manner, call) for new in fresh])
                if manner == 2:
                    pairs[-1] = _neighbours(pairs[-1])
                elif manner == 3 and len(given) > 1 and given[0] == given[1] and call % 3:
                    pairs[-1][1] = pairs[-1][0]
            if manner == 1:
                same.append(pairs[-1])
        filled = _fill(compiled, call)
        ran = ran or filled
        a, b = (
            _outcome(f, args, case, outside)
            for f, args, outside in ((eager, pairs[0], kept), (compiled, pairs[1], others))
        )
        a += [t.detach() for t in (*pairs[0], *kept.values())]
        b += [t.detach() for t in (*pairs[1], *others.values())]
        if len(a) != len(b):
            return f"call {call}: {len(a)} results, compiled {len(b)}"
        for i, (s, t) in enumerate(zip(a, b, strict=True)):
            wrong = _differ(s, t)
            if wrong:
                return f"call {call}, result {i} of {len(a)}: {wrong}"
    programs += ran
    return ""


def _laid(array: Any, manner: int, call: int) -> Any:
    t = ut.tensor(array)
    if manner == 4 and t.ndim > 1:
        return t.transpose(0, -1).contiguous().transpose(0, -1)
    if manner == 5:
        row = ut.zeros(2, t.numel() + 3, dtype=t.dtype)
        view = row[1, 1 + call % 2 : 1 + call % 2 + t.numel()].view(t.shape)
        return view.copy_(t)
    return t


def _neighbours(tensors: list[Any]) -> list[Any]:
    """The same numbers side by side in one memory."""
    whole = ut.cat([t.reshape(-1) for t in tensors]) if tensors else ut.zeros(0)
    found, at = [], 0
    for t in tensors:
        found.append(whole[at : at + t.numel()].view(t.shape))
        at += t.numel()
    return found


def _fill(compiled: Any, call: int) -> bool:
    """NaN wherever the program may expect nothing; whether there is one."""
    found = False
    for entry in compiled._entries.values():
        p = entry.program
        if p is None:
            continue
        found = True
        if call == 6:
            p.improve().join()
            if "not joined" in p.passes:
                raise RuntimeError(p.passes)
        for table in (p.table, p.better):
            if table is not None:
                table.fill(255)
    return found


def _outcome(f: Any, args: list[Any], case: Case, outside: dict[str, Any]) -> list[Any]:
    if case.mode == "history":
        args = [a.detach().requires_grad_() for a in args]
    try:
        values, grads = f(*args)
        found = [*values, *grads]
        if case.mode == "history":
            wanted = [v for v in values if v.requires_grad and v.is_floating_point()]
            if wanted:
                total = sum([(v * v * 0.1 + v).sum().double() for v in wanted])
                leaves = [*args, *outside.values()]
                found += ut.autograd.grad(total, leaves, allow_unused=True)
    except ERRORS as error:
        return [type(error).__name__]
    return found


def _differ(a: Any, b: Any) -> str:
    if not isinstance(a, ut.Tensor) or not isinstance(b, ut.Tensor):
        return "" if (a is None and b is None) or (a == b) is True else f"{a} and {b}"
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return f"{a.dtype} of shape {tuple(a.shape)}, compiled {b.dtype} of {tuple(b.shape)}"
    if a.requires_grad != b.requires_grad:
        return f"requires_grad is {a.requires_grad}, compiled {b.requires_grad}"
    x, y = (np.ascontiguousarray(t.detach().numpy(force=True)) for t in (a, b))
    if x.tobytes() == y.tobytes() or np.array_equal(x, y, equal_nan=True):
        return ""  # NaNs have no sign to rely on
    return textwrap.shorten(f"{x.ravel()[:9]} and {y.ravel()[:9]}", 300)
