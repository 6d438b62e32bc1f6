"""Forms that are launches of a program: the same bits as eager kernels, and nothing in Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Any

import pytest

import undertow as ut
from undertow.backends.cpu.calls import choice

alone = pytest.mark.skipif(
    choice.MODE != "always", reason="eager calls leave small arrays to NumPy"
)


@pytest.mark.skipif(choice.MODE == "always", reason="the tests below run here")
@pytest.mark.parametrize("threads", ["1", "2"])
def test_launches_have_the_bits_of_eager_kernels(threads: str) -> None:
    env = {**os.environ, "UNDERTOW_KERNELS": "always", "UNDERTOW_NUM_THREADS": threads}
    args = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(args, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout


@pytest.mark.parametrize("calls", [0, 6])
def test_transforms_of_a_compiled_function(calls: int) -> None:
    def f(x: Any) -> Any:
        return (x * x).sin().sum()

    compiled, x = ut.compile(f), randn(0, 4)
    for _ in range(calls):
        compiled(x)
    assert ut.func.jvp(compiled, (x,), (x,))[1].item() == ut.func.jvp(f, (x,), (x,))[1].item()
    for transform in (ut.func.grad, ut.func.jacrev, ut.func.jacfwd, ut.func.hessian):
        assert transform(compiled)(x).tolist() == transform(f)(x).tolist()
    rows = randn(1, 3, 4)
    assert ut.func.vmap(compiled)(rows).tolist() == ut.func.vmap(f)(rows).tolist()


def test_the_same_lines_in_two_files_read_their_own_globals() -> None:
    text = "def scaled(x):\n    return x * SCALE\n"
    first: dict[str, Any] = {"SCALE": 2.0}
    second: dict[str, Any] = {"SCALE": 3.0}
    exec(compile(text, "first.py", "exec"), first)
    exec(compile(text, "second.py", "exec"), second)

    @ut.compile
    def both(x: Any) -> Any:
        return first["scaled"](x) + second["scaled"](x)

    one = ut.ones(())
    for _ in range(6):
        assert both(one).item() == 5.0
    second["SCALE"] = 10.0
    assert both(one).item() == 12.0


def randn(seed: int, *shape: int) -> Any:
    return ut.randn(*shape, generator=ut.Generator().manual_seed(seed))


def bits(tensors: Any) -> list[bytes | None]:
    return [None if t is None else t.detach().numpy().tobytes() for t in tensors]


def assert_launched(make: Any, batch: Any, called: set[str] | None = None) -> None:
    """`make` gives a step and its parameters; twelve calls of it, eager and compiled."""
    ut.manual_seed(0)
    eager, params = make()
    ut.manual_seed(0)
    plain, others = make()
    step = ut.compile(plain, fullgraph=True)
    for i in range(6):
        results = []
        for call, mine in ((eager, params), (step, others)):
            ut.manual_seed(50 + i)  # each seed twice: the second call goes on in its stream
            found = []
            for _ in range(2):
                for entry in step._entries.values():
                    if entry.program is not None:  # no call needs what the last one has left
                        entry.program.table.fill(255)
                found.append(call(batch(i)))
                found += [*mine] + [p.grad for p in mine]
            results.append(bits(found))
        assert results[0] == results[1], f"batch {i}"
    (entry,) = step._entries.values()
    assert entry.program is not None
    assert entry.program.calls >= 6
    told = re.findall(r"from Python between them \((.*)\)", step.explain())
    assert {part.split()[1] for line in told for part in line.split(", ")} <= (called or set())


def trained(module: Any, loss_of: Any) -> Any:
    params = [*module.parameters()]
    optimizer = ut.optim.SGD(params, lr=0.1)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = loss_of(module, x)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, params


@alone
def test_dropout() -> None:
    def make() -> Any:
        layers = ut.nn.Linear(8, 33), ut.nn.Dropout(0.3), ut.nn.Linear(33, 3), ut.nn.Dropout(0.5)
        return trained(ut.nn.Sequential(*layers), lambda m, x: m(x).square().mean())

    assert_launched(make, lambda i: randn(i, 5, 8))


@alone
def test_random_numbers_beside_each_other() -> None:
    def loss(m: Any, x: Any) -> Any:
        return (m(x) + ut.randn(5, 3) * ut.rand(3)).mean()

    assert_launched(lambda: trained(ut.nn.Linear(8, 3), loss), lambda i: randn(i, 5, 8))


@alone
def test_embedding_and_scatter() -> None:
    def loss(m: Any, x: Any) -> Any:
        rows = m(x)
        counted = ut.zeros(20).scatter_add(0, x.reshape(-1), rows.sum(-1).reshape(-1))
        return rows.square().sum() + counted.square().sum()

    def batch(i: int) -> Any:
        return ut.randint(0, 20, (4, 6), generator=ut.Generator().manual_seed(i))

    assert_launched(lambda: trained(ut.nn.Embedding(20, 7), loss), batch)


# By geometry: direct, product, fewer in one and two dimensions, lanes, woven, shifted, patches and
# packed, and phases in their gradients.
CONVOLUTIONS: list[tuple[Any, dict[str, Any]]] = [
    ((2, 3, 5, 40), {}),
    ((2, 32, 32, 40), {"kernel_size": 1}),
    ((2, 32, 48, 60), {}),
    ((2, 32, 32, 12, 12), {}),
    ((2, 32, 32, 90), {"stride": 2}),
    ((4, 32, 32, 60), {"kernel_size": 5, "stride": 2, "padding": 2}),
    ((2, 48, 16, 200), {"dilation": 20}),
    ((2, 16, 32, 320), {"kernel_size": 16, "stride": 16}),
    ((2, 24, 64, 7, 7, 5), {"stride": 2, "padding": 1}),
]


@alone
@pytest.mark.parametrize("case", CONVOLUTIONS, ids=lambda c: f"{c[0]} {c[1]}")
def test_convolutions(case: Any) -> None:
    """Whatever algorithm computes them; only what may have to be mended is looked at in Python."""
    (n, c, o, *size), steps = case
    kind = (ut.nn.Conv1d, ut.nn.Conv2d, ut.nn.Conv3d)[len(size) - 1]

    def make() -> Any:
        first = kind(c, c, **{"kernel_size": 3, **steps})
        layers = kind(c, c, 1), first, ut.nn.ReLU(), kind(c, o, 1)
        return trained(ut.nn.Sequential(*layers), lambda m, x: m(x).square().mean())

    assert_launched(make, lambda i: randn(i, n, c, *size), {"mend_convolution"})


@alone
@pytest.mark.parametrize("which", ["input", "weight"])
def test_convolutions_of_what_is_not_finite(which: str) -> None:
    """Zeros of the padding stay zeros, also behind what has changed running statistics."""
    conv = ut.nn.Conv1d(32, 32, 3, padding=1, bias=False)
    norm = ut.nn.BatchNorm1d(32)

    def plain(x: Any) -> Any:
        with ut.no_grad():
            return norm(x).sum(), conv(x)

    step = ut.compile(plain, fullgraph=True)
    x = randn(0, 2, 32, 40)
    for _ in range(6):
        step(x.clone())
    (entry,) = step._entries.values()
    assert entry.program is not None
    if which == "weight":
        with ut.no_grad():
            conv.weight[3, 4, 0] = float("inf")
    else:
        x[0, 5, 7] = float("nan")
    calls = entry.program.calls
    found = step(x.clone())[1]
    assert entry.program.calls == calls + 1
    expected = plain(x)[1]
    assert ut.equal(found.isnan(), expected.isnan())
    assert ut.equal(found.nan_to_num(), expected.nan_to_num())
    assert 0 < int(found.isfinite().sum()) < found.numel()


@alone
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers(kind: str) -> None:
    def make() -> Any:
        layer = getattr(ut.nn, kind)(5, 12, 2, batch_first=True, bidirectional=True, dropout=0.2)
        return trained(layer, lambda m, x: m(x)[0].square().sum())

    assert_launched(make, lambda i: randn(i, 3, 6, 5))


@alone
@pytest.mark.parametrize("kind", ["LSTMCell", "GRUCell"])
def test_cells(kind: str) -> None:
    def loss(m: Any, x: Any) -> Any:
        state = None
        for j in range(3):
            state = m(x[j], state)
        return (state if kind == "GRUCell" else state[0]).square().sum()

    assert_launched(lambda: trained(getattr(ut.nn, kind)(5, 12), loss), lambda i: randn(i, 3, 4, 5))


@alone
@pytest.mark.parametrize("preserve", [True, False])
def test_checkpoints(preserve: bool) -> None:
    """What is computed again has the same random numbers, which are drawn once."""

    def make() -> Any:
        layers = ut.nn.Linear(8, 33), ut.nn.Dropout(0.3), ut.nn.Tanh(), ut.nn.Linear(33, 3)
        model = ut.nn.Sequential(*layers) if preserve else ut.nn.Sequential(*layers[::2])
        return trained(model, loss)

    def loss(m: Any, x: Any) -> Any:
        again = ut.utils.checkpoint.checkpoint
        found = again(m, x, use_reentrant=False, preserve_rng_state=preserve)
        return found.square().mean() + ut.rand(3).sum()

    assert_launched(make, lambda i: randn(i, 5, 8))


@alone
def test_constants_are_made_once() -> None:
    """A row of numbers is no call from Python; one that is changed afterwards is."""

    def make() -> Any:
        def loss(m: Any, x: Any) -> Any:
            return (m(x) * ut.arange(3)).sum() + ut.arange(5.0).square().sum()

        return trained(ut.nn.Linear(8, 3), loss)

    assert_launched(make, lambda i: randn(i, 5, 8))

    @ut.compile
    def counted(x: Any) -> Any:
        row = ut.arange(4)
        row += (x > 0).sum()
        return row * 2

    for i in range(10):
        x = randn(i, 6)
        assert counted(x).tolist() == [2 * (j + int((x > 0).sum())) for j in range(4)], i
    assert "1 arange" in counted.explain()
