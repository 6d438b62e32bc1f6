"""`prepare`: expressions as one Python function, quick for small arrays; large ones get a kernel.

The function is generated text: the question of size, then a line of NumPy per distinct
subexpression, so that calling it costs little more than its ufuncs.

>>> from ....kernel.expr import trace
>>> expr = trace(lambda g, a, b: g * (a + b) - g * b, 3)
>>> print(text((expr,), (True, True, False), True, 1024))
def run(a0, a1, a2):
    if a0.size >= 1024 or a0.itemsize == 2:
        return large((a0, a1, a2), a0.dtype)
    a2 = a0.dtype.type(a2)
    t0 = add(a1, a2)
    t1 = mul(a0, t0)
    t2 = mul(a0, a2)
    t3 = sub(t1, t2)
    return t3 if t3.__class__ is ndarray else asarray(t3)

Note [floating-point warnings]
NumPy warns when a result is infinite or NaN; torch does not, and neither do we. Setting NumPy's
error state costs as much as a small multiply, so these functions call ufuncs bare: the warning is
filtered by the module it comes from, and where a user turned warnings into errors, the caller
catches the error and goes the long way, which sets the error state.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ....kernel.expr import Expr
from ...base import Direct, is_boolean
from ...reference import UFUNCS, compile_map, python_lines
from .choice import crossover
from .native import ARITHMETIC, guard, possible, quick

warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"undertow\.")
ndarray = np.ndarray
_broadcast = np.broadcast
OFTEN = 1000  # calls from which on machine code pays, for which LLVM may have to be loaded
_BOOL = np.dtype(bool)
# The ufuncs of primitives by name, those of Note [native calls] once something is called often.
quickest: dict[str, Callable[..., Any]] = dict(UFUNCS)
_scopes: list[dict[str, Any]] = []  # of the functions that were prepared before


def prepared(
    exprs: tuple[Expr, ...],
    arrays: tuple[bool, ...],
    largest: bool,
    kernels: Mapping[str, Any],
    maps: Callable[..., Any],
) -> Callable[..., Any]:
    """The function of `Backend.prepare`; large arrays go to `run_maps`, which may give None.

    That is looked up in `kernels` with each call: it is not imported before it is needed.
    """
    kinds = [_BOOL if is_boolean(e) else None for e in exprs]
    alike = not any(kinds)

    def large(operands: tuple[Any, ...], dtype: Any) -> Any:
        dtypes = (dtype,) * len(kinds) if alike else tuple([kind or dtype for kind in kinds])
        # Halves come at any size, for which `maps` has to choose.
        found = kernels["run_maps"](exprs, operands, dtypes) if dtype.itemsize > 2 else None
        if found is None:
            found = maps(exprs, operands, dtypes)
        return found if len(exprs) > 1 else found[0]

    scope: dict[str, Any] = {**quickest, "large": large, "ndarray": np.ndarray}
    scope["asarray"], scope["broadcast"] = np.asarray, _broadcast
    scope["__name__"] = __name__
    if quickest["add"] is UFUNCS["add"]:
        _scopes.append(scope)
    exec(text(exprs, arrays, largest, crossover(*exprs)), scope)
    run: Callable[..., Any] = scope["run"]
    return run


def _quicken() -> None:
    """Have all prepared functions call machine code for arithmetic, from now on."""
    if quickest["add"] is UFUNCS["add"]:
        found = quick(UFUNCS)
        quickest.update(found)
        for scope in _scopes:
            scope.update(found)
        _scopes.clear()


def direct(expr: Expr, arrays: tuple[bool, ...], dtypes: tuple[Any, Any, Any]) -> Direct | None:
    """The function of `Backend.direct`: a ufunc, where `expr` is one, behind what must be asked.

    Who is called often gets machine code for that, see Note [native calls].
    """
    deep = any(a.head != "arg" for a in expr.args)
    if expr.head in ("arg", "const") or (deep and not all(arrays)):
        return None  # numbers must get a dtype first, see `text`
    if not (is_boolean(expr) or _keeps_dtype(expr)):
        return None
    compute, limit = compile_map(expr, len(arrays)), crossover(expr)
    single, double, long = dtypes
    pair = arrays == (True, True)
    left = OFTEN if possible() else -1

    def guarded(x: Any, *others: Any) -> Any:
        nonlocal left
        left -= 1
        if not left:
            _quicken()
            name = next((n for n in ARITHMETIC if UFUNCS[n] is compute), "")
            made.compute = guard(quickest.get(name, compute), arrays, dtypes, limit)
            return None  # so that who called looks for what it is to call
        if x.__class__ is not ndarray or x.size >= limit:
            return None
        dtype = x.dtype
        if not (dtype is single or dtype is double or dtype is long):
            return None
        for y in others:
            if pair:
                if y.__class__ is not ndarray or y.dtype is not dtype or y.size >= limit:
                    return None
                if y.shape != x.shape and _broadcast(x, y).size >= limit:
                    return None
            elif dtype is long and y.__class__ is not int:
                return None
        r = compute(x, *others)
        return r if r.__class__ is ndarray else np.asarray(r)

    made = Direct(guarded)
    return made


def text(exprs: tuple[Expr, ...], arrays: tuple[bool, ...], largest: bool, limit: int) -> str:
    """The source of the function `run`, for arrays and numbers as `arrays` tells."""
    lines, results = python_lines(exprs)
    names = [f"a{i}" for i in range(len(arrays))]
    every = [name for name, is_array in zip(names, arrays, strict=True) if is_array]
    first = every[0]
    inside = ", ".join(names) + ("," if len(names) == 1 else "")
    unusual = [f"{name}.size >= {limit}" for name in (every[:1] if largest else every)]
    if not largest:  # what they are broadcast to may be larger than each of them
        unusual += [
            f"{name}.shape != {first}.shape and broadcast({first}, {name}).size >= {limit}"
            for name in every[1:]
        ]
    numbers = [name for name in names if name not in every]
    deep = len(lines) > len(exprs)  # whether anything is computed from what was computed
    if deep or numbers:  # halves are computed in single
        unusual.append(f"{first}.itemsize == 2")
    code = [f"if {' or '.join(unusual)}:", f"    return large(({inside}), {first}.dtype)"]
    if deep:  # lest an expression of numbers alone become float64
        code += [f"{name} = {first}.dtype.type({name})" for name in numbers]
    code += lines
    found = [
        f"{r} if {r}.__class__ is ndarray else asarray({r})"
        if is_boolean(e) or _keeps_dtype(e)
        else f"asarray({r}, {first}.dtype)"
        for e, r in zip(exprs, results, strict=True)
    ]
    code.append(f"return {', '.join(found)}")
    return "\n".join([f"def run({', '.join(names)}):", *(f"    {line}" for line in code)])


def _keeps_dtype(expr: Expr) -> bool:
    """Whether NumPy gives the operands' dtype by itself, which constants alone do not have."""
    if expr.head in ("arg", "const"):
        return expr.head == "arg"
    if is_boolean(expr):
        return False
    chosen = expr.args[1:] if expr.head == "where" else expr.args
    return any(_keeps_dtype(a) for a in chosen)
