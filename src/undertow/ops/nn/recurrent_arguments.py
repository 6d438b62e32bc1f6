"""The arguments of recurrent functions: by name, by layer, and whether they fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...core.tensor import Tensor
from ...errors import ArgumentError, DTypeError, ShapeError
from ...kernel.cells import CELLS


class Weights(NamedTuple):
    """The weights of one layer in one direction."""

    ih: Tensor
    hh: Tensor
    b_ih: Tensor | None
    b_hh: Tensor | None
    hr: Tensor | None = None  # the projection of an LSTM's state


def cell_fits(kind: str, x: Tensor, h: Tensor, c: Tensor | None, *weights: Tensor | None) -> bool:
    """Whether a cell's arguments are what they should be, at little cost."""
    if (weights[2] is None) is not (weights[3] is None):
        return False
    first, state = x._array, h._array
    if len(first.shape) != 2 or len(state.shape) != 2 or first.dtype.kind != "f":
        return False
    (batch, features), (_, size), dtype = first.shape, state.shape, first.dtype
    rows = CELLS[kind].gates * size
    wanted = ((rows, features), (rows, size), (rows,), (rows,), (batch, size), (batch, size))
    for t, shape in zip((*weights, h, c), wanted, strict=True):
        if t is not None and (t._array.shape != shape or t._array.dtype != dtype):
            return False
    return True


def check_cell(
    op: str, kind: str, x: Tensor, h: Tensor, c: Tensor | None, weights: Weights
) -> None:
    """Raise what is wrong with a cell's arguments, if anything is."""
    if (weights.b_ih is None) is not (weights.b_hh is None):
        raise ArgumentError(f"[{op}] b_ih and b_hh are both tensors or both None")
    for name, t in (("input", x), ("hx", h), ("hx[1]", c)):
        if t is not None and t.ndim != 2:
            raise ShapeError(f"[{op}] {name} must be (batch, features), got shape {t.shape}")
    size = h.shape[1]
    check_weights(op, kind, weights, x.shape[1], size, "")
    for name, t, fits in (("hx", h, (x.shape[0], size)), ("hx[1]", c, h.shape)):
        if t is not None and t.shape != fits:
            raise ShapeError(f"[{op}] {name} must be {tuple(fits)}, got shape {t.shape}")
    check_dtypes(op, x, h, c, *weights)


_SHARED = ("hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional")
_PADDED = ("input", *_SHARED, "batch_first")
_PACKED = ("data", "batch_sizes", *_SHARED)


def bound(op: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """The arguments by name: of padded sequences, or of packed ones."""
    flagged = len(arguments) > 3 and not isinstance(arguments[3], bool)
    names = _PACKED if flagged or "batch_sizes" in named else _PADDED
    given = dict(zip(names, arguments, strict=False)) | named
    if len(arguments) > len(names) or set(given) != set(names):
        raise ArgumentError(
            f"[{op}] expects ({', '.join(_PADDED)}) or, of packed sequences, "
            f"({', '.join(_PACKED)}), got {len(arguments)} arguments"
            + (f" and {', '.join(named)}" if named else "")
        )
    for name, value in given.items():
        if name != "hx" or op != "lstm":  # whose state is a pair
            check_type(op, name, value)
    return given


def check_type(op: str, name: str, value: Any) -> None:
    """Raise an error if an argument is of a wrong type."""
    wanted: Any
    if name == "params":
        right = isinstance(value, Sequence) and all(isinstance(t, Tensor) for t in value)
        text = "a list of tensors"
    else:
        wanted, text = _KINDS.get(name, (Tensor, "a Tensor"))
        right = isinstance(value, wanted)
    if not right:
        raise DTypeError(f"[{op}] {name} must be {text}, got {type(value).__name__}")


_KINDS = {
    "num_layers": (int, "an int"),
    "dropout": ((int, float), "a number"),
    **dict.fromkeys(["has_biases", "train", "bidirectional", "batch_first"], (int, "a bool")),
}


def pair(op: str, hx: Any) -> tuple[Tensor, Tensor]:
    if isinstance(hx, Tensor) or not isinstance(hx, Sequence) or len(hx) != 2:
        got = f"a tensor of shape {hx.shape}" if isinstance(hx, Tensor) else repr(hx)
        raise ArgumentError(f"[{op}] hx must be a pair of tensors, state and memory, got {got}")
    return hx[0], hx[1]


def by_layer(op: str, kind: str, params: list[Tensor], biased: bool, count: int) -> list[Weights]:
    """The weights of all layers, both directions of each in turn."""
    each = 4 if biased else 2
    projected = kind == "lstm" and count > 0 and len(params) == (each + 1) * count
    if not projected and len(params) != each * count:
        raise ArgumentError(
            f"[{op}] {count} layers and directions {'with' if biased else 'without'} biases need "
            f"{each * count} weights, got {len(params)}"
        )
    size = each + projected
    found = []
    for i in range(0, len(params), size):
        mine = params[i : i + size]
        b_ih, b_hh = mine[2:4] if biased else (None, None)
        found.append(Weights(mine[0], mine[1], b_ih, b_hh, mine[-1] if projected else None))
    return found


def check_weights(
    op: str, kind: str, weights: Weights, features: int, size: int, where_: str
) -> None:
    """Whether weights fit an input of so many features and states of a size."""
    width = size if weights.hr is None else weights.hr.shape[-1]
    rows = CELLS[kind].gates * width
    fits = ((rows, features), (rows, size), (rows,), (rows,), (size, width))
    names = ("w_ih", "w_hh", "b_ih", "b_hh", "w_hr")
    for name, weight, shape in zip(names, weights, fits, strict=True):
        if weight is not None and weight.shape != shape:
            raise ShapeError(
                f"[{op}] {name}{where_} must be {shape} for an input of {features} features and a "
                f"state of {size}, got shape {weight.shape}"
            )


def check_states(
    op: str, h: Tensor, c: Tensor | None, count: int, batch: int, layers: list[Weights]
) -> None:
    of = layers[0].hr
    for name, t, size in (("hx", h, None), ("hx[1]", c, None if of is None else of.shape[-1])):
        if t is not None and (t.ndim != 3 or t.shape[:2] != (count, batch)):
            raise ShapeError(
                f"[{op}] {name} must be (layers * directions, batch, size), here ({count}, {batch},"
                f" {'size' if size is None else size}), got shape {t.shape}"
            )
    if c is not None and c.shape[2] != (h.shape[2] if of is None else of.shape[-1]):
        raise ShapeError(
            f"[{op}] the memory must have size {h.shape[2] if of is None else of.shape[-1]}, got "
            f"shape {c.shape}"
        )


def check_dtypes(op: str, x: Tensor, *others: Tensor | None) -> None:
    if not x.is_floating_point():
        raise DTypeError(f"[{op}] input must be floating, got {x.dtype}; convert it with .float()")
    for t in others:
        if t is not None and t.dtype is not x.dtype:
            raise DTypeError(
                f"[{op}] input, states and weights need one dtype, got {x.dtype} and {t.dtype}"
            )
