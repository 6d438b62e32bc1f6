"""A computation inside another one on the same thread, at every instruction of the other's launch.

A signal handler, a finaliser, a callback of a weak reference or the garbage collector may compute
while a product is being prepared: between any two instructions of Python. Here a trace function
does so at each of them in turn. What is freed then, or lies behind an array, cannot be touched:
that would end the process; see tools/fuzz/guard.py.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = """
    import faulthandler, math, os, sys
    faulthandler.enable()
    import numpy as np
    import undertow as ut
    import undertow.nn.functional as F
    from undertow.backends import memory
    from undertow.backends.cpu.convolution import cook_toom_plan, direct, padded
    from undertow.backends.cpu.products import gemm
    from undertow.backends.cpu.calls import launch
    from undertow.backends.cpu.forms import updates
    from fuzz import guard

    guard.install()
    WATCHED = {m.__file__ for m in (memory, cook_toom_plan, direct, gemm, launch, padded, updates)}
    EACH, COLD = CASE[2:]

    def random(*shape):
        return ut.tensor(np.random.default_rng(sum(shape)).standard_normal(shape), dtype=ut.float32)

    def product(m, k, n):
        a, b = random(k, m).T, random(n, k).T  # so that packing needs memory
        return lambda: [a @ b]

    def convolution(channels, size, kernel, bad=False):
        x, w = random(2, channels, size, size), random(channels, channels, kernel, kernel)
        if bad:
            x[0, 0, 0, 0] = math.inf
        return lambda: [F.conv2d(x, w, padding=1)]

    def steps(width):
        def run():
            p = [ut.full((width, 3), 0.5, requires_grad=True), ut.ones(width, requires_grad=True)]
            optimizer = ut.optim.Adam(p, lr=0.1)
            for _ in range(2):
                (p[0].sum(1) * p[1]).square().sum().backward()
                optimizer.step()
            return p
        return run

    def bits(found):
        return [t.detach().numpy().tobytes() for t in found]

    def forget():
        '''Let no memory be kept, so that whoever computes first makes it.'''
        launch._own.__dict__.clear()
        if COLD:
            launch.PLANS.clear()

    def run(outer, inner=None, at=0):
        '''The number of instructions, and what `outer` gives with `inner` run at one.'''
        seen = 0
        def trace(frame, event, arg):
            nonlocal seen
            if frame.f_code.co_filename not in WATCHED:
                return trace
            frame.f_trace_opcodes = True
            if event == "opcode":
                seen += 1
                if seen == at:
                    with ut.enable_grad():
                        inner()
            return trace
        sys.settrace(trace)
        try:
            found = outer()
        finally:
            sys.settrace(None)
        return seen, bits(found)

    outer, inner = (eval(text) for text in CASE[:2])
    expected, inside = bits(outer()), bits(inner())

    def check():
        assert bits(inner()) == inside, "the inner one differs"

    forget()
    count, found = run(outer)
    assert count > 50 and found == expected, count
    for at in range(1, count + 1, EACH):
        forget()
        assert run(outer, check, at)[1] == expected, f"differs at instruction {at} of {count}"
    print("fine")
"""
CASES = {
    "product": ("product(70, 90, 80)", "product(300, 400, 310)", 1, False),
    "smaller": ("product(300, 400, 310)", "product(70, 90, 80)", 1, False),
    "cold": ("product(70, 90, 80)", "product(90, 200, 110)", 3, True),
    "fewer products": ("convolution(32, 20, 3)", "convolution(48, 34, 3)", 1, False),
    "not finite": ("convolution(32, 20, 3)", "convolution(32, 20, 3, bad=True)", 1, False),
    "direct": ("convolution(2, 9, 3)", "convolution(3, 40, 5)", 1, False),
    "update": ("steps(8)", "steps(120)", 5, False),
}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="guards pages of Linux")
@pytest.mark.parametrize("name", CASES)
def test_inside(name):
    script = f"CASE = {CASES[name]!r}\n" + textwrap.dedent(SCRIPT)
    paths = [str(ROOT / "src"), str(ROOT / "tools"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )
    assert done.stdout.strip() == "fine", done.stderr[-3000:]


POOL = """
    import sys
    import undertow as ut
    from undertow.backends.cpu.threads import pool

    ut.set_num_threads(3)
    x = ut.ones(300, 300)
    (x @ x).sum()

    def run(at):
        pool._forget()
        seen = 0
        def trace(frame, event, arg):
            nonlocal seen
            if frame.f_code.co_filename != pool.__file__:
                return trace
            frame.f_trace_opcodes = True
            if event == "opcode":
                seen += 1
                if seen == at:
                    assert (x @ x).sum().item() == 300**3
            return trace
        sys.settrace(trace)
        try:
            assert (x @ x).sum().item() == 300**3
        finally:
            sys.settrace(None)
        joined = pool.ctypes.c_int32.from_address(pool._core + pool.FIELDS["workers"])
        assert len(pool._workers) == 2, len(pool._workers)
        for _ in range(2000):
            if joined.value == 2:
                break
            pool.time.sleep(0.01)
        assert joined.value == 2, "workers of another pool"
        pool._function("halt")(pool._core)
        return seen

    for at in range(1, run(0), 7):
        run(at)
    print("fine")
"""


def test_inside_the_making_of_the_pool():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(POOL)], capture_output=True, text=True, timeout=600
    )
    assert done.stdout.strip() == "fine", done.stderr[-3000:]
