"""Matrix products inside of other kernels, run as kernels themselves.

A plan of the caller's holds a product's sizes and steps. Its entry in the table is the kernel
`void (pool, plan, a, b, c, bias, work)`, the plan, and 1 if the kernel wants b before a. There are
several entries of each product, its corners: the first is for blocks of full size, the others for
last blocks, which are shorter.
"""

from __future__ import annotations

from .ir import Buffer, Function, Value

Start = tuple[Buffer, Value | int]  # a buffer, and the offset of a first element in it


class Products:
    """The products that a kernel runs, by name."""

    def __init__(self, f: Function, names: tuple[str, ...], corners: int) -> None:
        self.f = f
        self.names = names
        self.corners = corners
        self.table, self.work = f.buffer("products", "i64"), f.buffer("work", "u8", written=True)
        self.size = f.param("work_size")

    def run(
        self, name: str, c: Start, a: Start, b: Start, corner: Value, bias: Start | int = 0
    ) -> None:
        """c (m, n) = or += a (m, k) @ b (k, n), as the plan says."""
        f = self.f
        entry = (corner + self.corners * self.names.index(name)) * 3
        kernel, plan, transposed = (f.load(self.table, entry + i) for i in range(3))
        work = (self.work, f.thread() * self.size)
        with f.branch(transposed == 0):
            f.invoke(kernel, plan, a, b, c, bias, work)
        with f.branch(transposed == 1):
            f.invoke(kernel, plan, b, a, c, bias, work)
