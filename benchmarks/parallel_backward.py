"""Parallel backward: 32 independent 4-layer tanh networks in one loss, with 1 and 2 workers.

    python benchmarks/parallel_backward.py [--repeat N] [--isa avx2]

Prints, for each width, the time of the backward pass alone, interleaved in one process, best of
several: serial, with two workers, and torch's (which runs the nodes of one device on one thread).
The kernels of a serial pass have two threads of their own; the last two columns are a serial pass
whose kernels have one, as those of a pass with two workers do, and what the workers gain over that.
A pass that is given two workers may still run serially, where the library thinks it better.
"""

from __future__ import annotations

from _isa import options
from _race import header, race

import undertow as ut

WIDTHS = (32, 64, 128, 256, 512)
NETWORKS, LAYERS, BATCH = 32, 4, 64


def loss(module, weights, inputs):
    """The summed outputs of all networks."""
    total = None
    for layers in weights:
        h = inputs
        for w in layers:
            h = (h @ w).tanh()
        out = (h * h).sum()
        total = out if total is None else total + out
    return total


def networks(module, width):
    """The weights of the networks, and their input."""
    module.manual_seed(0)
    scale = width**-0.5
    weights = [
        [(module.randn(width, width) * scale).requires_grad_() for _ in range(LAYERS)]
        for _ in range(NETWORKS)
    ]
    return weights, module.randn(BATCH, width)


def main() -> None:
    """Race all widths."""
    parser = options(__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=15)
    repeat = parser.parse_args().repeat
    import torch

    torch.set_num_threads(2)
    ut.set_num_threads(2)
    header(torch)
    print(
        f"{'width':>6} {'serial ms':>10} {'2 workers':>10} {'speed-up':>9} {'torch ms':>9} "
        f"{'serial/torch':>13} {'2 workers/torch':>16} {'one thread':>11} {'speed-up':>9}"
    )
    for width in WIDTHS:
        ours, theirs = networks(ut, width), networks(torch, width)

        def ready(module, made):
            def setup():
                for layers in made[0]:
                    for w in layers:
                        w.grad = None
                return loss(module, *made)

            return setup

        def alone(out):
            ut.set_num_threads(1)
            out.backward(workers=1)
            ut.set_num_threads(2)

        times = race(
            {
                "serial": (ready(ut, ours), lambda out: out.backward(workers=1)),
                "pooled": (ready(ut, ours), lambda out: out.backward(workers=2)),
                "alone": (ready(ut, ours), alone),
                "torch": (ready(torch, theirs), lambda out: out.backward()),
            },
            repeat,
        )
        serial, pooled, one, rival = (
            1e3 * times[k] for k in ("serial", "pooled", "alone", "torch")
        )
        print(
            f"{width:>6} {serial:>10.2f} {pooled:>10.2f} {serial / pooled:>8.2f}x {rival:>9.2f} "
            f"{serial / rival:>13.2f} {pooled / rival:>16.2f} {one:>11.2f} "
            f"{one / pooled:>8.2f}x"
        )


if __name__ == "__main__":
    main()
