"""The verdict on a case: whether our answer is torch's, and who is right where it is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

import undertow as ut

from . import prelude
from .case import Answer, Case, answer

UNDECIDED = "-"  # the verdict where torch has no answer to compare with
# How far apart two answers may be, relative to the largest number; ten times more per derivative.
TOLERANCE = {"float64": 1e-9, "float32": 3e-5}
TINY = {"float64": 1e-300, "float32": 1e-35}  # below, numbers lose digits
SMALL = 1000  # elements; among more of them a step of finite differences crosses some jump
# Errors that are meant where torch answers: our rule saves another value than torch's does, or
# elements of an overlapping view would be changed twice.
MEANT = ["VersionError: [relu]", "VersionError: [copysign]", "VersionError: [tanhshrink]"]
MEANT += ["VersionError: [ndtr]", "share one memory location"]


def verdict(case: Case) -> str:
    """What is wrong with our answer to a case: "" if nothing is, "-" if nobody can say."""
    theirs = answer(case, torch)
    if theirs.error and not theirs.late:
        return UNDECIDED
    ours = answer(case, ut, **({"workers": case.workers} if case.workers else {}))
    if any(v is True and ours.values.get(n) is False for n, v in theirs.values.items()):
        return UNDECIDED  # ours takes a step that torch refuses
    if ours.error:
        fine = (theirs.error and ours.late) or any(part in ours.error for part in MEANT)
        return UNDECIDED if fine else f"refused with {ours.error}"
    for name in theirs.values:
        wrong = compare(case, name, ours, theirs)
        if wrong:
            return wrong
    if not theirs.error:
        return ""
    if sum(np.size(v) for v in theirs.values.values()) < SMALL:
        for order in range(1, case.orders + 1):  # torch has no derivative: ours must be a slope
            if slopes(case, order) is False:
                return f"derivative {order} is no slope, and torch refuses with {theirs.error}"
    return UNDECIDED


def compare(case: Case, name: str, ours: Answer, theirs: Answer) -> str:
    """What is wrong with one value."""
    found, expected = ours.values.get(name), theirs.values[name]
    if isinstance(expected, bool):
        return "" if found == expected else f"{name} is {found}, torch says {expected}"
    derived = name.startswith("derivative")
    kinds = ours.kinds.get(name), theirs.kinds.get(name)
    if not derived and kinds[0] != kinds[1]:
        return f"{name} has {kinds[0]}, torch's has {kinds[1]}"
    if case.edge and derived:
        found, expected = usable(case, found, expected, theirs)
    alone = case.edge == "each"
    least = TINY[case.dtype] if alone else max(1e-3, 0.1 * theirs.largest())
    distance = prelude.each_distance if alone else prelude.distance
    gap = distance(found, expected, least)
    order = int(name.split()[1]) if derived else 0
    allowed = TOLERANCE["float32" if case.single else "float64"] * 10**order
    if gap <= allowed:
        return ""
    if case.single:  # the one that is further from double precision is wrong
        lines = tuple(replace(x, code=x.code.replace("float32", "float64")) for x in case.lines)
        double = replace(case, dtype="float64", lines=lines)
        right = ut if order and slopes(double, order) else torch
        exact = answer(double, right).values.get(name)
        torchs = distance(expected, exact, least)
        if distance(found, exact, least) <= 10 * torchs + allowed:
            return ""
    elif order and slopes(case, order):
        return ""
    return f"{name} differs by {gap:.2g} of the largest number"


def usable(case: Case, found: Any, expected: Any, theirs: Answer) -> tuple[Any, Any]:
    """Derivatives at edges, without those that mean nothing.

    Where the value is NaN torch's derivative is anything, and where torch's derivative is NaN ours
    may be the limit.
    """
    value = theirs.values.get("v")
    if found is None or expected is None or value is None:
        return found, expected
    out = np.isnan(expected)
    if case.edge == "each" and value.size >= out.size:  # the values may be repeated
        out |= np.isnan(value.ravel()[: out.size]).reshape(out.shape)
    else:
        out |= np.isnan(value).any()
    return np.where(out, 0.0, found), np.where(out, 0.0, expected)


def slopes(case: Case, order: int) -> bool | None:
    """Whether our derivatives of an order are slopes of those below; None if that cannot be asked.

    It judges where torch is wrong: central differences of our own answers along a direction.
    """
    if case.single or case.edge or any("detach" in line.code for line in case.lines):
        return None
    slope = 0.0
    for j in range(len(case.leaves)):
        value = answer(replace(case, orders=order), ut).values.get(f"derivative {order} of x{j}")
        if value is not None:
            slope += float((value * prelude.numbers(900 + j, *value.shape)).sum())
    for step in (1e-5, 1e-6, 1e-4):
        measured = (combined(case, order, step) - combined(case, order, -step)) / (2 * step)
        if abs(measured - slope) <= 1e-4 * max(abs(measured), abs(slope), 1e-2):
            return True
    return False


def combined(case: Case, order: int, shift: float) -> float:
    """What `prelude.derivatives` differentiates to get an order, along the direction."""
    got = answer(replace(case, orders=order - 1), ut, shift=shift)
    if order > 1:
        below = f"derivative {order - 1} "
        kept = [v for name, v in got.values.items() if name.startswith(below)]
    else:
        kept = [got.values[n] for n, kind in got.kinds.items() if n[0] == "v" and "float" in kind]
    return sum(
        float((value * prelude.numbers(100 * order + j, *value.shape)).sum())
        for j, value in enumerate(kept)
        if value is not None
    )
