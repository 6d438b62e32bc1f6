"""Compiled training steps beside eager ones, and beside torch.compile and jax.jit if asked for.

    python benchmarks/compile.py [NAME …] [--threads 1] [--quick] [--rivals]

For each step: milliseconds of CPU time, eager and compiled, best of rounds that alternate; their
ratio; the first calls until the program runs; the time of a call beside its launches; memory of the
program's block against the sum of what it holds one after the other. With `--rivals`, torch eager,
torch.compile and jax.jit run in the same rounds, which takes a minute or more for each step.
Bits are compared with eager kernels when UNDERTOW_KERNELS=always is set.
"""

from __future__ import annotations

import itertools
import os
import time
import warnings
from collections.abc import Callable
from typing import Any

import _jax
import _jax_steps
from _isa import options


def chain(lib: Any) -> Any:
    """A hundred multiplies of 4×4, forward and backward."""
    x = (lib.ones(4, 4) * 1.01).requires_grad_()

    def step(w: Any) -> Any:
        x.grad = None
        y = x
        for _ in range(100):
            y = y * w
        loss = y.sum()
        loss.backward()
        return loss.detach()

    return step, lambda i: (lib.ones(4, 4) * (0.99 + 0.0001 * i),), [x]


def _network(lib: Any, sizes: list[int], activation: str, batch: int, optimizer: str) -> Any:
    nn = lib.nn
    lib.manual_seed(0)
    layers: list[Any] = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b), getattr(nn, activation)()]
    model = nn.Sequential(*layers[:-1])
    opt = getattr(lib.optim, optimizer)(model.parameters(), lr=1e-3)
    return model, opt, batch


def small_mlp(lib: Any) -> Any:
    """MLP 32-64-64-1, batch 16, Adam."""
    model, opt, _ = _network(lib, [32, 64, 64, 1], "ReLU", 16, "Adam")

    def step(x: Any, y: Any) -> Any:
        opt.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        opt.step()
        return loss.detach()

    return step, lambda i: (_random(lib, i, 16, 32), _random(lib, i, 16, 1)), [*model.parameters()]


def mlp(lib: Any) -> Any:
    """MLP 784-512-256-10, batch 128, cross-entropy, Adam."""
    model, opt, _ = _network(lib, [784, 512, 256, 10], "ReLU", 128, "Adam")
    loss_of = lib.nn.CrossEntropyLoss()

    def step(x: Any, y: Any) -> Any:
        opt.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        opt.step()
        return loss.detach()

    def batch(i: int) -> Any:
        return _random(lib, i, 128, 784), (_random(lib, i, 128).abs() * 1000).long() % 10

    return step, batch, [*model.parameters()]


def nets(lib: Any) -> Any:
    """32 tanh nets of width 32, forward and backward."""
    lib.manual_seed(0)
    models = [
        lib.nn.Sequential(
            *[layer for _ in range(3) for layer in (lib.nn.Linear(32, 32), lib.nn.Tanh())]
        )
        for _ in range(32)
    ]
    params = [p for m in models for p in m.parameters()]

    def step(x: Any) -> Any:
        for p in params:
            p.grad = None
        loss = sum([(m(x) ** 2).mean() for m in models])
        loss.backward()
        return loss.detach()

    return step, lambda i: (_random(lib, i, 64, 32),), params


def gelu(lib: Any) -> Any:
    """GELU by hand over 4 million elements, with sum and backward."""

    def step(x: Any) -> Any:
        x = x.detach().requires_grad_()
        y = 0.5 * x * (1 + lib.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))
        y.sum().backward()
        return x.grad

    return step, lambda i: (_random(lib, i, 4096, 1024),), []


def penalty(lib: Any) -> Any:
    """Gradient penalty: a second derivative."""
    model, opt, _ = _network(lib, [128, 256, 256, 1], "Tanh", 64, "Adam")

    def step(x: Any) -> Any:
        x = x.detach().requires_grad_()
        opt.zero_grad()
        out = model(x)
        (g,) = lib.autograd.grad(out.sum(), x, create_graph=True)
        loss = out.mean() + 10 * ((g.norm(dim=1) - 1) ** 2).mean()
        loss.backward()
        opt.step()
        return loss.detach()

    return step, lambda i: (_random(lib, i, 64, 128),), [*model.parameters()]


def block(lib: Any) -> Any:
    """A transformer block of width 256, batch 8, length 128, forward and backward."""
    nn = lib.nn
    lib.manual_seed(0)
    layer = nn.TransformerEncoderLayer(256, 8, 1024, 0.0, batch_first=True)
    params = [*layer.parameters()]

    def step(x: Any) -> Any:
        for p in params:
            p.grad = None
        loss = layer(x).square().mean()
        loss.backward()
        return loss.detach()

    return step, lambda i: (_random(lib, i, 8, 128, 256),), params


def lstm(lib: Any) -> Any:
    """LSTM of two layers, width 128, batch 32, length 64, forward and backward."""
    lib.manual_seed(0)
    layer = lib.nn.LSTM(64, 128, 2, batch_first=True)
    params = [*layer.parameters()]

    def step(x: Any) -> Any:
        for p in params:
            p.grad = None
        loss = layer(x)[0].square().mean()
        loss.backward()
        return loss.detach()

    return step, lambda i: (_random(lib, i, 32, 64, 64),), params


def lstm_cell(lib: Any) -> Any:
    """64 calls of LSTMCell, width 64, batch 32, forward and backward."""
    lib.manual_seed(0)
    cell = lib.nn.LSTMCell(32, 64)
    params = [*cell.parameters()]

    def step(x: Any) -> Any:
        for p in params:
            p.grad = None
        h = c = lib.zeros(32, 64)
        for i in range(64):
            h, c = cell(x[i], (h, c))
        loss = h.square().mean()
        loss.backward()
        return loss.detach()

    return step, lambda i: (_random(lib, i, 64, 32, 32),), params


def fcn(lib: Any) -> Any:
    """A fully convolutional net for series: convolutions, batch norms, Adam."""
    nn = lib.nn
    lib.manual_seed(0)

    def unit(a: int, b: int, k: int) -> list[Any]:
        return [nn.Conv1d(a, b, k, padding="same"), nn.BatchNorm1d(b), nn.ReLU()]

    model = nn.Sequential(*unit(1, 64, 8), *unit(64, 128, 5), *unit(128, 64, 3))
    head = nn.Linear(64, 5)
    params = [*model.parameters(), *head.parameters()]
    opt = lib.optim.Adam(params, lr=1e-3)
    loss_of = nn.CrossEntropyLoss()

    def step(x: Any, y: Any) -> Any:
        opt.zero_grad()
        loss = loss_of(head(model(x).mean(2)), y)
        loss.backward()
        opt.step()
        return loss.detach()

    def batch(i: int) -> Any:
        return _random(lib, i, 16, 1, 128), (_random(lib, i, 16).abs() * 1000).long() % 5

    return step, batch, params


def characters(lib: Any) -> Any:
    """A character transformer of two layers, width 128, AdamW."""
    nn = lib.nn
    lib.manual_seed(0)
    embed, place = nn.Embedding(65, 128), nn.Embedding(64, 128)
    blocks = [
        nn.TransformerEncoderLayer(128, 4, 512, 0.0, batch_first=True, norm_first=True)
        for _ in range(2)
    ]
    head = nn.Linear(128, 65)
    params = [p for m in (embed, place, *blocks, head) for p in m.parameters()]
    opt = lib.optim.AdamW(params, lr=1e-3)
    mask = nn.Transformer.generate_square_subsequent_mask(64)
    places = lib.arange(64)
    loss_of = nn.CrossEntropyLoss()

    def step(x: Any, y: Any) -> Any:
        opt.zero_grad()
        h = embed(x) + place(places)
        for b in blocks:
            h = b(h, src_mask=mask)
        loss = loss_of(head(h).reshape(-1, 65), y.reshape(-1))
        loss.backward()
        opt.step()
        return loss.detach()

    def batch(i: int) -> Any:
        ids = (_random(lib, i, 8, 65).abs() * 1000).long() % 65
        return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()

    return step, batch, params


STEPS: dict[str, Callable[[Any], Any]] = {
    f.__name__: f
    for f in (chain, small_mlp, nets, mlp, penalty, gelu, block, lstm, lstm_cell, fcn, characters)
}


def _random(lib: Any, seed: int, *shape: int) -> Any:
    import numpy as np

    array = np.random.default_rng(seed).standard_normal(shape, np.float32)
    return lib.from_numpy(array)


def best(runs: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """The best CPU time of each, in milliseconds; rounds alternate."""
    found = dict.fromkeys(runs, float("inf"))
    counts = {}
    for name, run in runs.items():
        begin = time.process_time()
        run()
        counts[name] = max(1, int(0.02 / max(time.process_time() - begin, 1e-6)))
    end = time.perf_counter() + seconds
    rounds = 0
    while time.perf_counter() < end or rounds < 5:
        rounds += 1
        for name, run in runs.items():
            begin = time.process_time()
            for _ in range(counts[name]):
                run()
            spent = (time.process_time() - begin) / counts[name] * 1e3
            found[name] = min(found[name], spent)
    return found


def main() -> None:
    """Print a row for each step."""
    parser = options(__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rivals", action="store_true")
    given = parser.parse_args()
    os.environ.setdefault("UNDERTOW_NUM_THREADS", str(given.threads))
    import undertow as ut

    ut.set_num_threads(given.threads)
    print(
        f"{'step':<12} {'eager ms':>9} {'compiled':>9} {'ratio':>6} {'until':>8} "
        f"{'beside µs':>9} {'block kB':>9} {'sum kB':>9}  same"
    )
    for name in given.names or STEPS:
        row(name, ut, given)


def row(name: str, ut: Any, given: Any) -> None:
    """Measure one step."""
    eager, batch, eager_params = STEPS[name](ut)
    step, _, params = STEPS[name](ut)
    compiled = ut.compile(step)
    batches = [batch(i) for i in range(8)]
    same = True
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calls = 0
        while calls < 8 and not any(e.program for e in compiled._entries.values()):
            compiled(*batches[calls % 8])
            calls += 1
        until = time.perf_counter() - begin
        for i in range(calls):
            eager(*batches[i % 8])
        for i in range(calls, calls + 6):
            a, b = eager(*batches[i % 8]), compiled(*batches[i % 8])
            same = same and bool((a == b).all())
            for p, q in zip(eager_params, params, strict=True):
                same = same and bool((p == q).all()) and bool((p.grad == q.grad).all())
        entry = next(iter(compiled._entries.values()))
        entry.next_witness = 1 << 60
        runs = {"eager": lambda: eager(*batches[0]), "compiled": lambda: compiled(*batches[0])}
        if entry.program is not None:
            thread = entry.program.improve()  # maps are joined in the background
            if thread is not None:
                thread.join()
            compiled(*batches[0])
            runs["table"] = entry.program.table.run
        if given.rivals:
            import torch

            torch.set_num_threads(given.threads)
            theirs, their_batch, _ = STEPS[name](torch)
            once = their_batch(0)
            runs["torch"] = lambda: theirs(*once)
            whole = torch.compile(theirs)
            start = time.perf_counter()
            try:
                whole(*once)
                whole(*once)
                runs["torch.compile"] = lambda: whole(*once)
                print(f"   torch.compile took {time.perf_counter() - start:.1f} s")
            except Exception as error:
                print(f"   torch.compile: {type(error).__name__}")
            jax = _jax.load(given.threads)
            if jax is not None and name in _jax_steps.STEPS:
                run = _jax_steps.run_of(jax, name)
                start = time.perf_counter()
                run()
                print(f"   jax.jit took {time.perf_counter() - start:.1f} s")
                runs["jax.jit"] = run
        found = best(runs, 1 if given.quick else 4)
    program = entry.program
    block = before = beside = 0.0
    if program is not None:
        block, before = program.table.memory / 1e3, program.table.before / 1e3
        beside = (found["compiled"] - found["table"]) * 1e3
    else:
        print(compiled.explain())
    print(
        f"{name:<12} {found['eager']:>9.3f} {found['compiled']:>9.3f} "
        f"{found['compiled'] / found['eager']:>6.2f} {until:>7.2f}s {beside:>9.1f} "
        f"{block:>9.0f} {before:>9.0f}  {same}",
        flush=True,
    )
    for rival in ("torch", "torch.compile", "jax.jit"):
        if rival in found:
            print(
                f"   {rival}: {found[rival]:.3f} ms, ratio {found['compiled'] / found[rival]:.2f}"
            )


if __name__ == "__main__":
    main()
