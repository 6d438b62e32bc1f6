"""A table of a million rows of 16: reading rows and elements by index, and adding them up."""

from __future__ import annotations

from functools import partial
from typing import Any

from ._workload import Workload, forward, normal, positions

ROWS, WIDTH = 1 << 20, 16

_table = partial(normal, ROWS, WIDTH)
_rows = partial(positions, ROWS, below=ROWS)
_elements = partial(positions, ROWS, WIDTH, below=ROWS)


def _expanded(index: Any) -> Any:
    """An index of rows as an index of elements, without a copy."""
    return index.unsqueeze(1).expand(-1, WIDTH)


def _embedding_backward(module: Any) -> Any:
    weight = module.from_numpy(_table()).requires_grad_()
    index = module.from_numpy(_rows())
    cotangent = module.from_numpy(normal(ROWS, WIDTH, seed=1))

    def setup() -> Any:
        weight.grad = None
        return module.nn.functional.embedding(index, weight)

    def run(out: Any) -> tuple[Any, ...]:
        out.backward(cotangent)
        return (weight.grad,)

    return setup, run


_TABLE = 4 * ROWS * WIDTH
_LONG, _SHORT = 8 * ROWS * WIDTH, 8 * ROWS  # an index of elements, and of rows

# As if every index were of the neighbouring row: what the random access costs is not counted.
INDEXING = (
    Workload(
        "gather",
        forward(lambda m, x, i: m.gather(x, 0, i), _table, _elements),
        1.0,
        0.7,
        _TABLE + _LONG,
        _TABLE,
    ),
    Workload(
        "gather rows",
        forward(lambda m, x, i: m.gather(x, 0, _expanded(i)), _table, _rows),
        1.0,
        0.7,
        _TABLE + _SHORT,
        _TABLE,
    ),
    Workload(
        "scatter_add",
        forward(
            lambda m, x, i, s: m.scatter_add(x, 0, i, s), _table, _elements, partial(_table, seed=1)
        ),
        1.0,
        0.7,
        2 * _TABLE + _LONG,
        _TABLE,
    ),
    Workload(
        "scatter_add rows",
        forward(
            lambda m, x, i, s: m.scatter_add(x, 0, _expanded(i), s),
            _table,
            _rows,
            partial(_table, seed=1),
        ),
        1.0,
        0.7,
        2 * _TABLE + _SHORT,
        _TABLE,
    ),
    Workload(
        "index_select",
        forward(lambda m, x, i: m.index_select(x, 0, i), _table, _rows),
        1.0,
        0.7,
        _TABLE + _SHORT,
        _TABLE,
    ),
    Workload("embedding backward", _embedding_backward, 1.0, 0.7, _TABLE + _SHORT, _TABLE),
)
