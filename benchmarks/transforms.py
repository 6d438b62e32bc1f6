"""Transforms of functions beside torch.func: jvp, per-sample gradients, ensembles, Hessians.

    python benchmarks/transforms.py [--repeat N] [--rows jvp,samples] [--jax] [--isa avx2]

Milliseconds of processor time on one thread, interleaved, best of several, and the ratio to torch.
Results are compared first. The rows of `jvp` also say how much longer they take than the forward
of the same function, that of `jet` how long beside four nested gradients. With `--jax` the same
functions are compiled, ours by `ut.compile`, and raced with `jax.jit`, in time of the process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import _jax
from _isa import options
from _race import WrongResult, agree, header, race

import undertow as ut

import numpy as np  # isort: skip

# A function that a transform has made, its arguments, and what it is compared with besides.
Built = tuple[Callable[..., Any], tuple[Any, ...], Callable[[], Any] | None]
RNG = np.random.default_rng(0)


def _arrays(*shapes: Any) -> list[Any]:
    return [RNG.standard_normal(s).astype(np.float32) * (s[-1] if s else 1) ** -0.5 for s in shapes]


def _tensors(m: Any, arrays: Any) -> list[Any]:
    return [m.tensor(a) for a in arrays]


def _mlp(m: Any, weights: Any, x: Any) -> Any:
    for i in range(0, len(weights), 2):
        x = m.nn.functional.linear(x, weights[i], weights[i + 1])
        if i + 2 < len(weights):
            x = m.tanh(x)
    return x


def _mlp_shapes(sizes: Any) -> list[Any]:
    return [s for a, b in pairwise(sizes) for s in ((b, a), (b,))]


SIZES = (784, 512, 256, 10)


def jvp_mlp(m: Any, data: Any) -> Built:
    weights, (x, t) = _tensors(m, data[:-2]), _tensors(m, data[-2:])

    def forward() -> Any:
        with m.no_grad():
            return (_mlp(m, weights, x),)

    return lambda x, t: m.func.jvp(lambda x: _mlp(m, weights, x), (x,), (t,)), (x, t), forward


def jvp_block(m: Any, data: Any) -> Built:
    q, p, up, ub, down, db, x, t = _tensors(m, data)
    f = m.nn.functional

    def block(x: Any) -> Any:
        h = f.layer_norm(x, (128,))
        parts = f.linear(h, q).reshape(8, 64, 3, 4, 32).permute(2, 0, 3, 1, 4)
        # torch has no forward mode of scaled_dot_product_attention
        a = (parts[0] @ parts[1].transpose(-1, -2) * 32**-0.5).softmax(-1) @ parts[2]
        x = x + f.linear(a.transpose(1, 2).reshape(8, 64, 128), p)
        h = f.layer_norm(x, (128,))
        return x + f.linear(f.gelu(f.linear(h, up, ub)), down, db)

    def forward() -> Any:
        with m.no_grad():
            return (block(x),)

    return lambda x, t: m.func.jvp(block, (x,), (t,)), (x, t), forward


def samples_mlp(m: Any, data: Any) -> Built:
    weights, x, y = _tensors(m, data[:-2]), m.tensor(data[-2]), m.tensor(data[-1])

    def loss(weights: Any, x: Any, y: Any) -> Any:
        return m.nn.functional.cross_entropy(_mlp(m, weights, x[None]), y[None])

    each = m.func.vmap(m.func.grad(loss), in_dims=(None, 0, 0))
    return each, (weights, x, y), None


def samples_cnn(m: Any, data: Any) -> Built:
    weights, x, y = _tensors(m, data[:-2]), m.tensor(data[-2]), m.tensor(data[-1])
    f = m.nn.functional

    def loss(weights: Any, x: Any, y: Any) -> Any:
        h = f.relu(f.conv2d(x[None], weights[0], weights[1], padding=1))
        h = f.max_pool2d(h, 2)
        h = f.relu(f.conv2d(h, weights[2], weights[3], padding=1))
        h = f.max_pool2d(h, 2).reshape(1, -1)
        return f.cross_entropy(f.linear(h, weights[4], weights[5]), y[None])

    each = m.func.vmap(m.func.grad(loss), in_dims=(None, 0, 0))
    return each, (weights, x, y), None


def ensemble(m: Any, data: Any) -> Built:
    weights, x, y = _tensors(m, data[:-2]), m.tensor(data[-2]), m.tensor(data[-1])

    def loss(weights: Any) -> Any:
        return m.nn.functional.cross_entropy(_mlp(m, weights, x), y)

    each = m.func.vmap(m.func.grad(loss))
    return each, (weights,), None


def hessian(m: Any, data: Any) -> Built:
    w, x = _tensors(m, data)
    found = m.func.hessian(lambda x: (m.tanh(w @ x) ** 2).sum() + (x**4).sum())
    return found, (x,), None


def jacobian(m: Any, data: Any) -> Built:
    a, b, x = _tensors(m, data)
    found = m.func.jacrev(lambda x: m.sin(b @ m.tanh(a @ x)))
    return found, (x,), None


def jacobian_forward(m: Any, data: Any) -> Built:
    a, b, x = _tensors(m, data)
    found = m.func.jacfwd(lambda x: m.sin(b @ m.tanh(a @ x)))
    return found, (x,), None


def fourth(m: Any, data: Any) -> Built:
    """The fourth derivative of a network along a direction: by jet, and by nested gradients."""
    weights, (x, v) = _tensors(m, data[:-2]), _tensors(m, data[-2:])

    def network(x: Any) -> Any:
        return _mlp(m, weights, x)

    def nested() -> Any:
        # Rows do not depend on each other, so that a gradient of the sum has those of all.
        t = m.zeros(x.shape[0], 1, requires_grad=True)
        y = network(x + t * v)
        for _ in range(4):
            (y,) = m.autograd.grad(y.sum(), t, create_graph=True)
        return (y,)

    if m is not ut:
        return nested, (), nested
    return lambda x, v: (m.func.jet(network, (x,), (v,), 4)[1][3],), (x, v), nested


def _labels(*shape: int) -> Any:
    return RNG.integers(0, 10, shape)


ROWS = {
    "jvp of an MLP, batch 128": (
        jvp_mlp, lambda: _arrays(*_mlp_shapes(SIZES), (128, 784), (128, 784))),
    "jvp of a transformer block": (
        jvp_block,
        lambda: _arrays((384, 128), (128, 128), (512, 128), (512,), (128, 512), (128,),
                        (8, 64, 128), (8, 64, 128))),
    "samples' gradients, MLP, 128": (
        samples_mlp, lambda: [*_arrays(*_mlp_shapes(SIZES), (128, 784)), _labels(128)]),
    "samples' gradients, CNN, 64": (
        samples_cnn,
        lambda: [*_arrays((8, 1, 3, 3), (8,), (16, 8, 3, 3), (16,), (10, 784), (10,),
                          (64, 1, 28, 28)), _labels(64)]),
    "ensemble of 16 MLPs": (
        ensemble,
        lambda: [*_arrays(*[(16, *s) for s in _mlp_shapes((64, 128, 128, 10))], (128, 64)),
                 _labels(128)]),
    "hessian, 100 variables": (hessian, lambda: _arrays((100, 100), (100,))),
    "jacrev, 64 to 64": (jacobian, lambda: _arrays((64, 64), (64, 64), (64,))),
    "jacfwd, 64 to 64": (jacobian_forward, lambda: _arrays((64, 64), (64, 64), (64,))),
    "fourth derivative, jet": (
        fourth, lambda: _arrays(*_mlp_shapes((2, 64, 64, 64, 1)), (256, 2), (256, 2))),
}  # fmt: skip


def jax_as_torch(jax: Any) -> Any:
    """What the functions here take of torch, by JAX."""
    np_, lax = jax.numpy, jax.lax

    def linear(x: Any, w: Any, b: Any) -> Any:
        return x @ w.T + b

    def cross_entropy(x: Any, y: Any) -> Any:
        return -jax.nn.log_softmax(x)[np_.arange(len(y)), y].mean()

    def conv2d(x: Any, w: Any, b: Any, padding: int) -> Any:
        sides = [(padding, padding)] * 2
        found = lax.conv_general_dilated(x, w, (1, 1), sides)
        return found + b[:, None, None]

    def max_pool2d(x: Any, k: int) -> Any:
        return lax.reduce_window(x, -np_.inf, lax.max, (1, 1, k, k), (1, 1, k, k), "VALID")

    functional = SimpleNamespace(
        linear=linear, cross_entropy=cross_entropy, conv2d=conv2d, max_pool2d=max_pool2d,
        relu=jax.nn.relu,
    )  # fmt: skip
    func = SimpleNamespace(
        vmap=lambda f, in_dims=0: jax.vmap(f, in_dims), grad=jax.grad, hessian=jax.hessian,
        jacrev=jax.jacrev, jacfwd=jax.jacfwd, jvp=jax.jvp,
    )  # fmt: skip
    return SimpleNamespace(
        tensor=np_.asarray, tanh=np_.tanh, sin=np_.sin, nn=SimpleNamespace(functional=functional),
        func=func,
    )  # fmt: skip


def _leaves(value: Any) -> list[Any]:
    """All results, as arrays."""
    if isinstance(value, (tuple, list)):
        return [x for v in value for x in _leaves(v)]
    return [value.detach().numpy() if hasattr(value, "detach") else np.asarray(value)]


def raced(torch: Any, name: str, build: Any, data: Any, given: Any) -> None:
    """One row beside torch."""
    (function, args, forward), (rival, others, _) = build(ut, data), build(torch, data)
    agree(_leaves(function(*args)), _leaves(rival(*others)))
    runners: dict[str, Any] = {"ours": lambda: function(*args), "torch": lambda: rival(*others)}
    if forward is not None:
        runners["forward"] = forward
    times = race(runners, given.repeat, given.seconds, threads=1)
    line = f"{name:32} undertow {1e3 * times['ours']:8.2f} ms, torch "
    line += f"{1e3 * times['torch']:8.2f} ms, ratio {times['ours'] / times['torch']:.2f}"
    if forward is not None:
        beside = "nested gradients" if build is fourth else "its forward"
        line += f", {times['ours'] / times['forward']:.2f} x {beside}"
    print(line, flush=True)


def compiled(jax: Any, name: str, build: Any, data: Any, given: Any) -> None:
    """One row beside jax.jit."""
    (function, args, _), (rival, others, _) = build(ut, data), build(jax_as_torch(jax), data)
    ours, theirs = ut.compile(function), jax.jit(rival)
    for _ in range(8):  # until the program runs, and its maps are joined
        found = ours(*args)
        time.sleep(0.1)
    agree(_leaves(found), _leaves(theirs(*others)), "jax")
    runners = {"ours": lambda: ours(*args), "jax": lambda: jax.block_until_ready(theirs(*others))}
    times = race(runners, 10 * given.repeat, given.seconds, clock=time.process_time)
    line = f"{name:32} compiled {1e3 * times['ours']:8.3f} ms, jax.jit {1e3 * times['jax']:8.3f} ms"
    print(f"{line}, ratio {times['ours'] / times['jax']:.2f}", flush=True)


def main() -> None:
    """Race them."""
    parser = options(__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--rows", default="", help="only those whose names contain one of these")
    parser.add_argument("--jax", action="store_true", help="compiled, beside jax.jit")
    parser.add_argument("--seconds", type=float, default=8.0, help="for each row, about")
    given = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    ut.set_num_threads(1)
    jax = _jax.load(1) if given.jax else None
    header(torch, *[jax] * bool(jax), threads=1)
    wanted = [w for w in given.rows.split(",") if w]
    for name, (build, make) in ROWS.items():
        if wanted and not any(w in name for w in wanted):
            continue
        data = make()
        try:
            if jax is None:
                raced(torch, name, build, data, given)
            elif build not in (jvp_block, fourth):
                compiled(jax, name, build, data, given)
        except WrongResult as error:
            print(f"{name:32} WRONG RESULT: {error}")


if __name__ == "__main__":
    main()
