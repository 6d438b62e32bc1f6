"""Sums of products over named dimensions: einsum and tensordot.

Note [contraction]
An operand is a tensor with one label for each dimension. Repeated labels become diagonals, labels
that nobody else needs are summed, and two operands are combined by one (batched) matrix product:
labels of both that are still needed are its batch, the others of both its inner dimension. So
everything here is views, sums and `product`, and needs no derivative of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, overload

from ...backends.registry import backend_of
from ...core.dispatch import apply
from ...core.op import OPS
from ...core.register import function
from ...core.tensor import Tensor
from ...errors import ArgumentError, DTypeError, ShapeError
from ...shapes import Ints, as_int, wrap_dim
from ..shape.movement import reshaped
from .matmul import operands, product

_permute = OPS["permute"]
Label = Any  # a letter, or an int: within an ellipsis -1 is the last dimension, -2 the one before
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Labelled:
    """A tensor with a label for each dimension."""

    __slots__ = ("labels", "tensor")

    def __init__(self, tensor: Tensor, labels: Sequence[Label]) -> None:
        self.tensor = tensor
        self.labels = tuple(labels)

    def size(self, label: Label) -> int:
        """The size of the dimension with this label; 1 where there is none."""
        return self.tensor.shape[self.labels.index(label)] if label in self.labels else 1

    def ordered(self, labels: Sequence[Label]) -> Tensor:
        """The tensor with its dimensions in the order of `labels`, all of which it has."""
        if tuple(labels) == self.labels:
            return self.tensor
        order = tuple(self.labels.index(label) for label in labels)
        return apply(_permute, (self.tensor,), (order,))

    def spread(self, labels: Sequence[Label]) -> Tensor:
        """The same with size 1 for the labels that it lacks."""
        mine = self.ordered([label for label in labels if label in self.labels])
        return reshaped(mine, tuple(self.size(label) for label in labels))

    def only(self, needed: set[Label]) -> Labelled:
        """Summed over all labels but the needed ones."""
        gone = [i for i, label in enumerate(self.labels) if label not in needed]
        if not gone:
            return self
        kept = [label for label in self.labels if label in needed]
        return Labelled(self.tensor.sum(gone), kept)


# Two operands --------------------------------------------------------------------------------
def _contract(a: Labelled, b: Labelled, needed: set[Label]) -> Labelled:
    """The product of two operands, summed over the labels of theirs that are not needed."""
    shared = set(a.labels) & set(b.labels)
    a, b = a.only(needed | shared), b.only(needed | shared)
    inner = [label for label in a.labels if label in shared and label not in needed]
    batch = [label for label in a.labels if label in shared and label in needed]
    rows = [label for label in a.labels if label not in shared]
    columns = [label for label in b.labels if label not in shared]
    labels = [*batch, *rows, *columns]
    if not inner:
        return Labelled(a.spread(labels) * b.spread(labels), labels)
    x, turned_x = _matrices(a, batch, rows, inner)
    y, turned_y = _matrices(b, batch, inner, columns)
    out = product(x, y, turned_x, turned_y)
    shape = [a.size(label) for label in (*batch, *rows)] + [b.size(label) for label in columns]
    return Labelled(reshaped(out, tuple(shape)), labels)


def _matrices(
    x: Labelled, batch: list[Label], rows: list[Label], columns: list[Label]
) -> tuple[Tensor, bool]:
    """`x` as (batch, rows, columns), or as (batch, columns, rows) if that saves a copy."""
    for first, second, transposed in ((rows, columns, False), (columns, rows, True)):
        ordered = x.ordered([*batch, *first, *second])
        shape = tuple(math.prod(map(x.size, group)) for group in (batch, first, second))
        shape = shape if batch else shape[1:]
        if backend_of(ordered._array).reshape(ordered._array, shape) is not None:
            return reshaped(ordered, shape), transposed
    return reshaped(ordered, shape), True


def _contract_all(given: list[Labelled], output: tuple[Label, ...]) -> Tensor:
    """All operands combined pair by pair, the pair with the smallest result first."""
    pending = list(given)
    while len(pending) > 1:
        if len(pending) == 2:
            i, j = 0, 1
        else:
            i, j = _best_pair(pending, output)
        b, a = pending.pop(j), pending.pop(i)
        needed = set(output).union(*(x.labels for x in pending))
        pending.append(_contract(a, b, needed))
    last = pending[0].only(set(output))
    return last.ordered(output)


def _best_pair(pending: list[Labelled], output: tuple[Label, ...]) -> tuple[int, int]:
    """The pair whose product is smallest beside its operands; among equals the first."""
    best: tuple[int, int, int] | None = None
    for i in range(len(pending)):
        for j in range(i + 1, len(pending)):
            a, b = pending[i], pending[j]
            rest = (x.labels for n, x in enumerate(pending) if n not in (i, j))
            needed = set(output).union(*rest)
            labels = {*a.labels, *b.labels} & needed
            size = math.prod(max(a.size(label), b.size(label)) for label in labels)
            gain = size - a.tensor.numel() - b.tensor.numel()
            if best is None or gain < best[0]:
                best = gain, i, j
    assert best is not None
    return best[1:]


# The equation --------------------------------------------------------------------------------
@overload
def einsum(equation: str, /, *operands: Tensor | Sequence[Tensor]) -> Tensor: ...
@overload
def einsum(operand: Tensor, /, *dimensions_and_operands: Tensor | Sequence[Any]) -> Tensor: ...
@function(method=False)
def einsum(*args: Any) -> Tensor:
    """A sum of products, by an equation over the operands' dimensions.

    Letters name dimensions; those that are not in the output are summed, repeated ones in one
    operand take its diagonal, `...` stands for further dimensions, which broadcast, and without an
    arrow the output has the letters that occur once, in alphabetical order. Instead of an equation
    each operand may be followed by a list of numbers (below 52) and Ellipsis.

    >>> import undertow as ut
    >>> a, b = ut.ones(2, 3), ut.ones(3, 4)
    >>> ut.einsum("ij,jk->ik", a, b).shape
    (2, 4)
    >>> ut.einsum(a, [0, 1], [1])
    tensor([2., 2., 2.])
    """
    terms, output, tensors = _parse(args)
    given = [_labelled(i, t, term) for i, (t, term) in enumerate(zip(tensors, terms, strict=True))]
    sizes = _sizes(given)
    ellipsis = sorted(label for label in sizes if isinstance(label, int))
    if output is None:
        letters = [c for term in terms for c in term]
        once = sorted(c for c in sizes if isinstance(c, str) and letters.count(c) == 1)
        wanted: tuple[Label, ...] = (*ellipsis, *once)
    else:
        wanted = _wanted(output, sizes, ellipsis)
    if len(given) > 1 and len(wanted) < len(sizes):  # where nothing is summed, dtypes promote
        operands("einsum", *tensors)
    return _contract_all([_without_broadcast(x, sizes) for x in given], wanted)


Term = list[Any]  # letters, and Ellipsis


def _parse(args: tuple[Any, ...]) -> tuple[list[Term], Term | None, list[Tensor]]:
    """The operands' terms, the output's term if it is given, and the operands."""
    if not args:
        raise ArgumentError("[einsum] needs an equation and operands")
    if isinstance(args[0], str):
        tensors = list(args[1:])
        if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
            tensors = list(tensors[0])
        left, arrow, right = args[0].partition("->")
        terms = [_letters(args[0], part) for part in left.split(",")]
        output = _letters(args[0], right) if arrow else None
    else:
        tensors = list(args[0::2])
        lists = list(args[1::2])
        output = None
        if len(tensors) > len(lists):
            output = _numbered(tensors.pop())
        terms = [_numbered(numbers) for numbers in lists]
    if len(tensors) != len(terms) or not tensors:
        raise ArgumentError(f"[einsum] the equation has {len(terms)} operands, got {len(tensors)}")
    for t in tensors:
        if not isinstance(t, Tensor):
            raise DTypeError(f"[einsum] operands must be tensors, got {type(t).__name__}")
    return terms, output, tensors


def _letters(equation: str, part: str) -> Term:
    before, dots, after = (piece.replace(" ", "") for piece in part.partition("..."))
    for c in before + after:
        if c not in _LETTERS:
            raise ArgumentError(
                f"[einsum] {c!r} in {equation!r} is no subscript: those are letters, and one '...' "
                "for each operand"
            )
    return [*before, Ellipsis, *after] if dots else list(before)


def _numbered(numbers: Any) -> Term:
    if not isinstance(numbers, (list, tuple)):
        raise ArgumentError(
            f"[einsum] every operand is followed by a list of numbers, got {numbers!r:.40}"
        )
    term: Term = []
    for n in numbers:
        if n is not Ellipsis:
            n = as_int("einsum", "a subscript", n)
            if not 0 <= n < len(_LETTERS):
                raise ArgumentError(f"[einsum] subscripts are numbers from 0 to 51, got {n}")
            n = _LETTERS[n]
        term.append(n)
    if term.count(Ellipsis) > 1:
        raise ArgumentError("[einsum] an operand has at most one Ellipsis")
    return term


def _labelled(i: int, t: Tensor, term: Term) -> Labelled:
    """An operand with its labels, repeated ones replaced by the diagonal."""
    named = len(term) - term.count(Ellipsis)
    if named > t.ndim or (named < t.ndim and Ellipsis not in term):
        raise ShapeError(
            f"[einsum] operand {i} of shape {t.shape} has {t.ndim} dimensions, but "
            f"{named} subscripts" + (" beside the ellipsis" if Ellipsis in term else "")
        )
    labels: list[Label] = []
    for c in term:
        if c is Ellipsis:
            labels += range(named - t.ndim, 0)
        else:
            labels.append(c)
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if t.shape[first] != t.shape[second]:
                raise ShapeError(
                    f"[einsum] subscript {label!r} is repeated in operand {i} with sizes "
                    f"{t.shape[first]} and {t.shape[second]}"
                )
            t = t.diagonal(0, first, second)  # becomes the last dimension
            del labels[second], labels[first]
            labels.append(label)
    return Labelled(t, labels)


def _sizes(given: list[Labelled]) -> dict[Label, int]:
    """The size of each label; 1 broadcasts."""
    sizes: dict[Label, int] = {}
    for i, x in enumerate(given):
        for label, size in zip(x.labels, x.tensor.shape, strict=True):
            seen = sizes.setdefault(label, size)
            if seen == 1:
                sizes[label] = size
            elif size not in (1, seen):
                name = f"subscript {label!r}" if isinstance(label, str) else "the ellipsis"
                raise ShapeError(
                    f"[einsum] {name} has size {size} in operand {i} of shape {x.tensor.shape}, "
                    f"but {seen} before"
                )
    return sizes


def _wanted(output: Term, sizes: dict[Label, int], ellipsis: list[Label]) -> tuple[Label, ...]:
    """The labels of an explicit output."""
    for c in output:
        if c is not Ellipsis and c not in sizes:
            raise ArgumentError(f"[einsum] the output subscript {c!r} is in no operand")
        if output.count(c) > 1:
            raise ArgumentError(f"[einsum] the output has the subscript {c!r} twice")
    return tuple(label for c in output for label in (ellipsis if c is Ellipsis else [c]))


def _without_broadcast(x: Labelled, sizes: dict[Label, int]) -> Labelled:
    """Without the dimensions of size 1 that are larger elsewhere: multiplying broadcasts them."""
    kept = [c for c, size in zip(x.labels, x.tensor.shape, strict=True) if size == sizes[c]]
    if len(kept) == len(x.labels):
        return x
    return Labelled(reshaped(x.tensor, tuple(map(x.size, kept))), kept)


@function(method=False)
def tensordot(a: Tensor, b: Tensor, dims: int | Tensor | Sequence[Ints] = 2) -> Tensor:
    """The sum of products over the last dims of `a` and the first of `b`, or over listed pairs.

    >>> import undertow as ut
    >>> ut.tensordot(ut.ones(2, 3, 4), ut.ones(4, 3), dims=([1, 2], [1, 0]))
    tensor([12., 12.])
    """
    a, b = operands("tensordot", a, b)
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, (list, tuple)):
        if len(dims) != 2:
            raise ArgumentError(f"[tensordot] dims must be a number or two lists, got {dims!r}")
        pairs = [list(d) if isinstance(d, (list, tuple)) else [d] for d in dims]
        left = [wrap_dim("tensordot", d, a.ndim) for d in pairs[0]]
        right = [wrap_dim("tensordot", d, b.ndim) for d in pairs[1]]
    else:
        count = as_int("tensordot", "dims", dims)
        if not 0 <= count <= min(a.ndim, b.ndim):
            raise ArgumentError(
                f"[tensordot] dims must be from 0 to {min(a.ndim, b.ndim)} for shapes {a.shape} "
                f"and {b.shape}, got {count}"
            )
        left, right = list(range(a.ndim - count, a.ndim)), list(range(count))
    if len(left) != len(right) or len({*left}) != len(left) or len({*right}) != len(right):
        raise ArgumentError(f"[tensordot] dims {left} and {right} are not pairs of dimensions")
    for i, j in zip(left, right, strict=True):
        if a.shape[i] != b.shape[j] and 1 not in (a.shape[i], b.shape[j]):
            raise ShapeError(
                f"[tensordot] dimension {i} of {a.shape} and dimension {j} of {b.shape} differ: "
                f"{a.shape[i]} and {b.shape[j]}"
            )
    # Labels: the number of the dimension in a; those of b follow, but for the paired ones.
    first = list(range(a.ndim))
    second = [left[right.index(j)] if j in right else a.ndim + j for j in range(b.ndim)]
    output = tuple(n for n in (*first, *second) if n not in left)
    given = [Labelled(a, first), Labelled(b, second)]
    sizes = _sizes(given)
    return _contract_all([_without_broadcast(x, sizes) for x in given], output)
