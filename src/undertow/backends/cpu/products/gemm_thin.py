"""Products with few columns: the tiles of `kernel/thin`, and the loops around them."""

from __future__ import annotations

from typing import NamedTuple

from ....kernel import thin
from ..codegen.llvm import emit
from .gemm_driver import Tasks, driver_text
from .gemm_micro import PLAIN, Epilogue
from .gemm_tiles import IR_TYPES, Target, Tile

TILE = [
    *(("ptr", name) for name in ("pool", *thin.BUFFERS)),
    *(("i64", name) for name in thin.PARAMETERS),
]
MOST_COLUMNS = 5  # of a tile


class ThinShape(NamedTuple):
    """One variant of the tile."""

    type: str  # of LLVM: float or double
    tile: Tile  # rows and columns
    epilogue: Epilogue = PLAIN


def thin_tile(target: Target, columns: int) -> Tile:
    """The largest tile of so many columns: its sums, the columns of B and one vector of A fit.

    >>> thin_tile(Target(64, 32, True, True, True), 5)
    Tile(rows=5, vectors=5)
    """
    rows = (target.registers - (1 if target.fma else 2) - columns) // columns
    return Tile(min(rows, 8), columns)


def thin_tile_text(name: str, shape: ThinShape, target: Target) -> str:
    """The tile as LLVM IR."""
    bias, activation = shape.epilogue
    dtype = IR_TYPES[shape.type]
    f = thin.thin_function(name, dtype, *shape.tile, bool(bias), activation)
    return emit(f, target.machine)


class _ThinTasks(Tasks):
    """Tiles of few columns; B is packed, or has k contiguous."""

    def block(self) -> None:
        f, field = self.f, self.field
        with f.when(self.packs_b):  # columns take the part of steps
            where = (0, field["columns"], self.k0, self.k)
            self.pack("b", where, self.scratch, field["packed_row"])
        placed = f.at(self.bases[1], f.mul(self.k0, field["b_k"]))
        b = f.select(self.packs_b, self.scratch, placed, "ptr")
        b_column = f.select(self.packs_b, field["packed_row"], field["b_column"])
        with f.loop(self.first_panel, self.end_panel) as panel:
            row, rows = self.panel(panel)
            a = f.add(f.mul(row, field["a_row"]), f.mul(self.k0, field["a_k"]))
            with f.loop(self.first_strip, self.end_strip) as strip:
                column, columns = self.piece(strip, "strip_width", "wider_strips")
                c = f.add(f.mul(row, field["c_row"]), f.mul(column, field["c_column"]))
                bias = f.add(f.mul(row, field["bias_row"]), f.mul(column, field["bias_column"]))
                given = [
                    "null",
                    f.at(self.bases[0], a),
                    f.at(b, f.mul(column, b_column)),
                    f.at(self.bases[2], c),
                    f.at(self.bias, bias),
                    self.k,
                    field["a_row"],
                    b_column,
                    field["c_row"],
                    field["c_column"],
                    self.mode,
                    field["bias_row"],
                    field["bias_column"],
                ]
                self.call_tile(self.tiles, columns, rows, TILE, given)


def thin_text(name: str, packed: bool) -> str:
    """The product by tiles of few columns as LLVM IR."""
    return driver_text(name, _ThinTasks, packed)
