"""Transforms of functions beside torch.func: jvp, per-sample gradients, ensembles, Hessians.

    python benchmarks/transforms.py [--repeat N] [--rows jvp,samples] [--isa avx2]

Milliseconds of processor time on one thread, interleaved, best of several, and the ratio to torch.
Results are compared first. The rows of `jvp` also say how much longer they take than the forward
of the same function, that of `jet` how long beside four nested gradients.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from _isa import options
from _race import WrongResult, agree, header, race

import undertow as ut

import numpy as np  # isort: skip

RNG = np.random.default_rng(0)


def _arrays(*shapes: Any) -> list[Any]:
    return [RNG.standard_normal(s).astype(np.float32) * (s[-1] if s else 1) ** -0.5 for s in shapes]


def _tensors(m: Any, arrays: Any) -> list[Any]:
    return [m.tensor(a) for a in arrays]


def _mlp(m: Any, weights: Any, x: Any) -> Any:
    for i in range(0, len(weights), 2):
        x = m.nn.functional.linear(x, weights[i], weights[i + 1])
        if i + 2 < len(weights):
            x = x.tanh()
    return x


def _mlp_shapes(sizes: Any) -> list[Any]:
    return [s for a, b in pairwise(sizes) for s in ((b, a), (b,))]


SIZES = (784, 512, 256, 10)


def jvp_mlp(m: Any, data: Any) -> Any:
    weights, (x, t) = _tensors(m, data[:-2]), _tensors(m, data[-2:])

    def forward() -> Any:
        with m.no_grad():
            return (_mlp(m, weights, x),)

    return lambda: m.func.jvp(lambda x: _mlp(m, weights, x), (x,), (t,)), forward


def jvp_block(m: Any, data: Any) -> Any:
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

    return lambda: m.func.jvp(block, (x,), (t,)), forward


def samples_mlp(m: Any, data: Any) -> Any:
    weights, x, y = _tensors(m, data[:-2]), m.tensor(data[-2]), m.tensor(data[-1])

    def loss(weights: Any, x: Any, y: Any) -> Any:
        return m.nn.functional.cross_entropy(_mlp(m, weights, x[None]), y[None])

    each = m.func.vmap(m.func.grad(loss), in_dims=(None, 0, 0))
    return lambda: each(weights, x, y), None


def samples_cnn(m: Any, data: Any) -> Any:
    weights, x, y = _tensors(m, data[:-2]), m.tensor(data[-2]), m.tensor(data[-1])
    f = m.nn.functional

    def loss(weights: Any, x: Any, y: Any) -> Any:
        h = f.relu(f.conv2d(x[None], weights[0], weights[1], padding=1))
        h = f.max_pool2d(h, 2)
        h = f.relu(f.conv2d(h, weights[2], weights[3], padding=1))
        h = f.max_pool2d(h, 2).flatten(1)
        return f.cross_entropy(f.linear(h, weights[4], weights[5]), y[None])

    each = m.func.vmap(m.func.grad(loss), in_dims=(None, 0, 0))
    return lambda: each(weights, x, y), None


def ensemble(m: Any, data: Any) -> Any:
    weights, x, y = _tensors(m, data[:-2]), m.tensor(data[-2]), m.tensor(data[-1])

    def loss(weights: Any) -> Any:
        return m.nn.functional.cross_entropy(_mlp(m, weights, x), y)

    each = m.func.vmap(m.func.grad(loss))
    return lambda: each(weights), None


def hessian(m: Any, data: Any) -> Any:
    w, x = _tensors(m, data)
    found = m.func.hessian(lambda x: ((w @ x).tanh() ** 2).sum() + (x**4).sum())
    return lambda: (found(x),), None


def jacobian(m: Any, data: Any) -> Any:
    a, b, x = _tensors(m, data)
    found = m.func.jacrev(lambda x: (b @ (a @ x).tanh()).sin())
    return lambda: (found(x),), None


def jacobian_forward(m: Any, data: Any) -> Any:
    a, b, x = _tensors(m, data)
    found = m.func.jacfwd(lambda x: (b @ (a @ x).tanh()).sin())
    return lambda: (found(x),), None


def fourth(m: Any, data: Any) -> Any:
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

    return (lambda: (m.func.jet(network, (x,), (v,), 4)[1][3],)) if m is ut else nested, nested


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


def main() -> None:
    """Race them."""
    parser = options(__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--rows", default="", help="only those whose names contain one of these")
    parser.add_argument("--seconds", type=float, default=8.0, help="for each row, about")
    given = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    ut.set_num_threads(1)
    header(torch, threads=1)
    wanted = [w for w in given.rows.split(",") if w]
    for name, (build, make) in ROWS.items():
        if wanted and not any(w in name for w in wanted):
            continue
        data = make()
        (ours, forward), (theirs, _) = build(ut, data), build(torch, data)
        try:
            agree(*[[t.detach().numpy() for t in run()] for run in (ours, theirs)])
        except WrongResult as error:
            print(f"{name:32} WRONG RESULT: {error}")
            continue
        runners = {"ours": ours, "torch": theirs}
        if forward is not None:
            runners["forward"] = forward
        times = race(runners, given.repeat, given.seconds, threads=1)
        line = f"{name:32} undertow {1e3 * times['ours']:8.2f} ms, torch "
        line += f"{1e3 * times['torch']:8.2f} ms, ratio {times['ours'] / times['torch']:.2f}"
        if forward is not None:
            beside = "nested gradients" if build is fourth else "its forward"
            line += f", {times['ours'] / times['forward']:.2f} x {beside}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
