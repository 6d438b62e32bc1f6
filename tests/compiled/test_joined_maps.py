"""Maps of programs that are joined: bits as in eager kernels, in random programs and deep ones."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.backends.program.graph import Launched, Mapped, Piece, Recording
from undertow.backends.program.passes import Group, passed
from undertow.kernel.expr import Shared, arg, call, trace

HERE = Path(__file__)


def batch(i: int, *shape: int) -> ut.Tensor:
    return ut.tensor(np.random.default_rng(i).standard_normal(shape).astype("f4"))


def improve(compiled: Any) -> list[Any]:
    """Wait for the better table of each program, and fill blocks with NaN."""
    found = [e.program for e in compiled._entries.values() if e.program is not None]
    for p in found:
        p.improve().join()
        assert "not joined" not in p.passes, p.passes
        for table in (p.table, p.better):
            if table is not None:
                table.fill(255)
    return found


def same(a: Any, b: Any) -> bool:
    return a.detach().numpy().tobytes() == b.detach().numpy().tobytes()


def test_scratch_memory_has_room_as_long_as_a_launch_runs() -> None:
    """In the joined table as well, and no more than the launch has asked for."""

    def sizes() -> list[int]:
        @ut.compile
        def step(x: Any, a: Any, b: Any) -> Any:
            for _ in range(4):
                x = ut.tanh((ut.tanh((x @ a) * 0.5 + 1) @ b) * 0.5 + 1)
            return x

        for _ in range(4):
            step(batch(0, 64, 96), batch(1, 96, 128), batch(2, 128, 96))
        (program,) = improve(step)
        return [program.table.memory, program.better.memory]

    first = sizes()
    large = batch(3, 900, 900)
    _ = large @ large  # the thread keeps more scratch memory for its products from now on
    assert sizes() == first
    assert first[1] <= first[0]


# Random programs ----------------------------------------------------------------------------------
def random_step(seed: int) -> tuple[Callable[..., Any], list[Any]]:
    """Mostly maps, with views, writes in place, booleans and numbers, and other forms between."""
    draw = np.random.default_rng(seed)
    rows, columns = (int(n) for n in draw.choice([1, 3, 4, 6], 2))
    kept = [batch(seed + 7, rows, columns), batch(seed + 8, rows, columns)]
    plan = [
        (int(draw.integers(17)), int(draw.integers(100)), int(draw.integers(100)))
        for _ in range(int(draw.integers(4, 30)))
    ]

    def one(pool: list[Any], kind: int, i: int, j: int) -> Any:
        a, b = pool[-1 - i % min(len(pool), 4)], pool[j % len(pool)]
        if kind < 4:
            return (a * b, a - b * 0.5, ut.tanh(a) + b, 1 + ut.erf(a))[kind]
        if kind == 4:
            return ut.where(a > b, a, 0.25)
        if kind == 5:
            return (a > 0).float() * b
        if kind == 6:
            return a.reshape(-1).mul(1.5).reshape(rows, columns)
        if kind == 7:
            return a.t().contiguous().t() + b
        if kind == 8:
            return a + b[:, :1]
        if kind == 9:
            return b - a[0]
        if kind == 10:
            kept[i % 2].mul_(0.5).add_(b, alpha=0.25)
            return kept[i % 2] * 2
        if kind == 11:
            kept[i % 2][j % rows].copy_(a[i % rows])
            return a * 0.5
        if kind == 12:
            c = a * 2
            c.add_(b)
            c[:, j % columns] += b[:, i % columns]
            return c
        if kind == 13:
            return a - a.sum(j % 2, keepdim=True)
        if kind == 14:
            return a.double().mul(b.double()).float()
        if kind == 15:
            return ut.minimum(a, b).abs().sqrt() ** 2
        return a.flip(0) * b

    def step(x: Any, y: Any) -> Any:
        pool = [x, y, *kept]
        for kind, i, j in plan:
            pool.append(one(pool, kind, i, j))
            if kind == 16 and i % 2:
                x.mul_(0.5)
        found = [p.clone() if any(p is q for q in (x, y, *kept)) else p for p in pool[4:]]
        return found[-1::-3], pool[-1].sum()

    return step, kept


def run_random(seed: int) -> int:
    """A random program against eager kernels; how many maps went."""
    one, one_kept = random_step(seed)
    other, other_kept = random_step(seed)
    compiled = ut.compile(other)
    fewer = 0
    shape = tuple(one_kept[0].shape)
    for i in range(12):
        x, y = batch(i, *shape), batch(i + 20, *shape)
        u, v = x.clone(), y.clone()
        a, b = one(x, y), compiled(u, v)
        both = zip([*a[0], a[1], *one_kept, x, y], [*b[0], b[1], *other_kept, u, v], strict=True)
        for s, t in both:
            assert np.array_equal(s.numpy(), t.numpy(), equal_nan=True), (seed, i)
        for p in improve(compiled):
            fewer = max(fewer, p.launches - p.table.launches)
    return fewer


def layers(count: int) -> None:
    """That many layers of gelu by hand, with backward, against eager: a few kernels a layer."""

    def step(x: Any) -> Any:
        x = x.detach().requires_grad_()
        y = x
        for _ in range(count):
            y = 0.5 * y * (1 + ut.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))
        y.sum().backward()
        return y.detach(), x.grad

    compiled = ut.compile(step)
    for i in range(8):
        x = batch(i, 16, 64)
        for s, t in zip(step(x), compiled(x), strict=True):
            assert same(s, t), (count, i)
        improve(compiled)
    (program,) = improve(compiled)
    assert program.table.launches <= 4 * count + 6, program.described()


@pytest.mark.parametrize("part", range(3))
def test_random_programs(part: int) -> None:
    """Bit for bit, with the program's memory filled with NaN before each call."""
    run_alone(f"random {part}")


def test_many_layers() -> None:
    """Deep programs become several kernels, as many for each layer."""
    run_alone("layers")


def run_alone(what: str) -> None:
    env = {**os.environ, "UNDERTOW_KERNELS": "always"}
    env["PYTHONPATH"] = os.pathsep.join([*sys.path[:1], str(HERE.parents[1])]) or ""
    env["PYTHONPATH"] += os.pathsep + os.environ.get("PYTHONPATH", "")
    subprocess.run([sys.executable, str(HERE), *what.split()], check=True, env=env)


# Passes -------------------------------------------------------------------------------------------
def piece(store: int, offset: int = 0) -> Piece:
    return Piece(store, offset, (8,), (4,), np.dtype("f4"))


def launched(out: Piece, *ins: Piece, expr: Any = None) -> Launched:
    expr = trace(lambda *a: a[0] * a[-1], len(ins)) if expr is None else expr
    m = Mapped((expr,), tuple(range(len(ins))), ins, (out,), "f32")
    return Launched("map_x", 1, 0, (out, *ins), (), (), (), None, None, frozenset([out.store]), m)


def recorded(*steps: Launched) -> Recording:
    made = Recording()
    made.steps = list(steps)
    return made


def test_what_nobody_reads_is_never_written() -> None:
    found = passed(
        recorded(
            launched(piece(1), piece(0)),
            launched(piece(2), piece(1)),
            launched(piece(3), piece(1)),  # nobody reads that
            launched(piece(4), piece(2), piece(0)),
        ),
        [0, 4],
    )
    (group,) = found.recording.steps
    assert isinstance(group, Group)
    assert found.dead == 1
    assert group.ins == (piece(0),)
    assert group.outs == (piece(4),)


def test_a_write_between_keeps_maps_apart() -> None:
    """Store 0 is written by something unknown between its two readers."""
    write = launched(piece(0), piece(5))._replace(map=None)
    steps = [launched(piece(1), piece(0)), write, launched(piece(2), piece(0), piece(1))]
    found = passed(recorded(*steps), [0, 2])
    assert found.recording.steps == steps
    assert found.reasons == {"something else comes between": 1}


def test_other_views_are_not_joined() -> None:
    steps = [launched(piece(1), piece(0)), launched(piece(2), piece(1, 4))]
    found = passed(recorded(*steps), [0, 2])
    assert found.recording.steps == steps
    assert "another view of it is read" in found.reasons


def test_text_grows_with_the_number_of_parts() -> None:
    def text(depth: int) -> int:
        x = arg(0)
        for _ in range(depth):
            x = call("tanh", x) * x + x
        return len(repr(Shared([x])))

    assert text(40) < 2.5 * text(20)


if __name__ == "__main__":
    if sys.argv[1] == "layers":
        for count in (2, 12):
            layers(count)
    else:
        first = 100 * int(sys.argv[2])
        count = int(sys.argv[3]) if len(sys.argv) > 3 else 3
        assert sum(run_random(s) for s in range(first, first + count)) > count
