"""A parameter of which each process keeps some rows, and the units that are gathered together.

Note [gathered, freed]
A unit is what one `fully_shard` call has: parameters that are whole while their module runs. The
module then holds leaves (`Rows.full`) in their place. A leaf whose unit is not gathered keeps its
shape and no memory: all its elements are one. What operations save of a gathered leaf is kept as a
place in it (`Pass.pack`), so that the backward pass can gather the unit again.

Every process must gather and reduce in the same order, whatever its threads do. Gathers of a
backward pass follow the reverse of the order in which the units ran forward, and so do sums of
gradients. The two have groups of their own, so that they need no order among each other.
"""

from __future__ import annotations

import threading
from contextvars import ContextVar
from itertools import pairwise
from typing import Any

import numpy as np

from ...autograd.engine import queue_callback, running
from ...core.modes import current, no_grad
from ...core.tensor import Tensor, wrap
from ...dtypes import DType
from ...errors import GradientError, UnsupportedError
from ...nn.parameter import Parameter
from .. import functions, groups
from ..reductions import ReduceOp


class Rows:
    """One parameter: its rows in this process, and a leaf that is the whole of it at times."""

    def __init__(self, name: str, parameter: Tensor, group: Any, dtype: DType | None) -> None:
        if not parameter.ndim:
            raise UnsupportedError(
                f"[fully_shard] parameter {name!r} is a scalar, which has no rows to deal out; "
                "make it a tensor of shape (1,)"
            )
        if not isinstance(parameter._array, np.ndarray):
            raise UnsupportedError(
                f"[fully_shard] parameter {name!r} is on {parameter.device}; only the CPU's "
                "memory is dealt out"
            )
        self.name, self.shape = name, tuple(parameter.shape)
        self.dtype = dtype or parameter.dtype  # of the whole
        share = -(-self.shape[0] // group.members)
        ends = [min(i * share, self.shape[0]) for i in range(group.members + 1)]
        self.places = list(pairwise(ends))
        self.mine = slice(*self.places[group.me])
        with no_grad():
            self.shard = Parameter(parameter.detach()[self.mine].clone(), parameter.requires_grad)
        setattr(self.shard, "_rows_of", self)  # noqa: B010
        self.full = Parameter(wrap(self.nothing()), parameter.requires_grad)
        self.places_in: list[tuple[Any, str]] = []  # modules that have it, and as what

    def nothing(self) -> Any:
        """An array of the whole shape without memory."""
        one = np.zeros(1, wrap(np.zeros(1, np.float32)).to(self.dtype)._array.dtype)
        return np.broadcast_to(one, self.shape)

    def pieces(self, whole: Tensor) -> list[Tensor]:
        """The rows of each process."""
        return [whole[a:b] for a, b in self.places]


class Unit:
    """The parameters of one `fully_shard` call."""

    def __init__(self, rows: list[Rows], group: Any, policy: Any, frees: bool | None) -> None:
        self.rows, self.group, self.policy, self.frees = rows, group, policy, frees
        self.sums = groups.helper(group, "sums of gradients", 1)
        self.gathered = False
        self.arrived: set[int] = set()
        self.touched = False  # in this backward pass
        self.works: list[tuple[Rows, Tensor, Any, Any]] = []
        self.owner: Pass | None = None
        self.synchronises = True
        for r in rows:
            if r.full.requires_grad:
                r.full.register_post_accumulate_grad_hook(self._came(r))

    def _came(self, rows: Rows) -> Any:
        def came(_: Tensor) -> None:
            if self.synchronises:
                assert self.owner is not None
                self.owner.came(self, rows)

        return came

    def gather(self) -> None:
        """Make the leaves whole."""
        if self.gathered:
            return
        with no_grad():
            works, wholes = [], []
            for r in self.rows:
                whole = wrap(np.empty(r.shape, r.nothing().dtype))
                mine = r.shard.detach().to(r.dtype)
                works.append(
                    functions.all_gather(r.pieces(whole), mine, self.group, True, label=r.name)
                )
                wholes.append(whole)
            for work in works:
                work.wait()
        for r, whole in zip(self.rows, wholes, strict=True):
            r.full._array = whole._array
        self.gathered = True

    def free(self) -> None:
        """Take the memory of the leaves away; who has saved a place in them can gather again."""
        for r in self.rows:
            r.full._array = r.nothing()
        self.gathered = False

    def show(self, whole: bool) -> None:
        """Let the modules have the whole parameters, or the rows of this process."""
        for r in self.rows:
            for module, name in r.places_in:
                module._parameters[name] = r.full if whole else r.shard

    def complete(self) -> bool:
        """Whether all gradients have come in this pass."""
        return len(self.arrived) == sum(r.full.requires_grad for r in self.rows)

    def reduce(self) -> None:
        """Begin to sum the gradients, of which each process gets its rows."""
        reduced = self.policy.reduce_dtype
        with no_grad():
            for r in self.rows:
                if id(r) not in self.arrived:
                    continue
                assert r.full.grad is not None
                gradient = r.full.grad.detach()
                r.full.grad = None
                gradient = gradient.to(reduced or gradient.dtype).contiguous()
                pieces = r.pieces(gradient)
                out = pieces[self.group.me].clone()
                work = functions.reduce_scatter(
                    out, pieces, ReduceOp.AVG, self.sums, True, label=r.name
                )
                self.works.append((r, out, work, gradient))
        self.free()

    def settle(self) -> None:
        """Wait for the sums, and add them to the gradients."""
        works, self.works = self.works, []
        with no_grad():
            for r, out, work, _ in works:
                work.wait()
                own = out.to(r.shard.dtype)
                if r.shard.grad is None:
                    r.shard.grad = own
                else:
                    r.shard.grad.add_(own)


class Pass:
    """The passes of a model: the units that a root has, in the order in which they ran."""

    def __init__(self) -> None:
        self.order: list[Unit] = []
        self.next = 0  # of the reversed order, whose gradients are summed next
        self.queued = False
        self.lock = threading.RLock()

    def ran(self, unit: Unit) -> None:
        """A unit runs forward."""
        unit.owner = self
        if unit not in self.order and current().grad:
            self.order.append(unit)

    def begin(self) -> None:
        """Be called at the end of the backward pass."""
        if not self.queued and running.get() is not None:
            self.queued = True
            queue_callback(self._finish)

    def forget(self) -> None:
        """Give up a backward pass that ended with an error."""
        if self.queued and running.get() is None:
            for unit in self.order:
                for r in unit.rows:
                    r.full.grad = None
                for _, _, work, _ in unit.works:
                    work.wait()
                unit.works.clear()
            self._reset()

    # What operations save -----------------------------------------------------------------------
    def pack(self, tensor: Tensor) -> Any:
        """A place in a gathered leaf, or the tensor itself, in the form of who is outside."""
        array = tensor._array
        if isinstance(array, np.ndarray) and array.size:
            address = array.__array_interface__["data"][0]
            for unit in self.order:
                if not unit.gathered:
                    continue
                for r in unit.rows:
                    whole = r.full._array
                    offset = address - whole.__array_interface__["data"][0]
                    if 0 <= offset < whole.nbytes and array.dtype == whole.dtype:
                        return _Place(self, unit, r, offset, array.shape, array.strides)
        return tensor

    def unpack(self, packed: Any) -> Tensor:
        """The tensor again; its unit is gathered if it was freed."""
        if not isinstance(packed, _Place):
            found: Tensor = packed
            return found
        with self.lock:
            self.begin()
            self._gather(packed.unit)
            whole = packed.rows.full._array
            view = np.ndarray(packed.shape, whole.dtype, whole, packed.offset, packed.strides)
        return wrap(view)

    def _gather(self, wanted: Unit) -> None:
        if not wanted.touched:
            for unit in reversed(self.order):
                if not unit.touched:
                    unit.touched = True
                    unit.gather()
                if unit is wanted:
                    break
        wanted.gather()

    # Gradients ------------------------------------------------------------------------------------
    def came(self, unit: Unit, rows: Rows) -> None:
        """A gradient is complete; on any thread."""
        with self.lock:
            self.begin()
            unit.arrived.add(id(rows))
            while self.next < len(self.order):
                following = self.order[-1 - self.next]
                if not following.complete():
                    break
                self._sum(following)

    def _sum(self, unit: Unit) -> None:
        if self.next:
            self.order[-self.next].settle()  # so that few whole gradients are held at a time
        self.next += 1
        if unit.arrived:
            unit.touched = True
            unit.reduce()

    def _finish(self) -> None:
        try:
            for unit in self.order:
                if unit.arrived and not unit.complete():
                    lacking = [
                        r.name
                        for r in unit.rows
                        if r.full.requires_grad and id(r) not in unit.arrived
                    ]
                    error = GradientError(
                        f"[fully_shard] no gradient came for {', '.join(map(repr, lacking[:5]))} "
                        "in this backward pass, though for others of its unit; use every "
                        "parameter of a unit in the loss, or give it a fully_shard of its own"
                    )
                    if unit.group.members > 1:
                        unit.group.error = unit.sums.error = error
                    raise error
            while self.next < len(self.order):
                self._sum(self.order[-1 - self.next])
            for unit in self.order:
                unit.settle()
        finally:
            self._reset()

    def _reset(self) -> None:
        self.queued, self.next = False, 0
        for unit in self.order:
            unit.arrived.clear()
            unit.touched = False
            unit.free()


class _Place:
    """A part of a whole parameter that an operation has saved."""

    __slots__ = ("offset", "owner", "rows", "shape", "strides", "unit")

    def __init__(
        self, owner: Pass, unit: Unit, rows: Rows, offset: int, shape: Any, strides: Any
    ) -> None:
        self.owner, self.unit, self.rows = owner, unit, rows
        self.offset, self.shape, self.strides = offset, shape, strides


active: ContextVar[Pass | None] = ContextVar("active", default=None)
