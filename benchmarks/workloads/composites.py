"""Forward and backward of fused composites: norms and softmax, cross entropy, attention."""

from __future__ import annotations

from typing import Any

from ._workload import Run, Workload, normal, positions, training

ROWS, WIDTH = 4096, 1024
CLASSES = 10000
BATCH, HEADS, TOKENS, HEAD = 8, 8, 256, 64


def _norm_softmax(module: Any) -> Run:
    functional = module.nn.functional
    x = module.from_numpy(normal(ROWS, WIDTH)).requires_grad_()
    scale, shift = (module.from_numpy(normal(WIDTH, seed=s)).requires_grad_() for s in (1, 2))
    cotangent = module.from_numpy(normal(ROWS, WIDTH, seed=3))

    def function(x: Any, scale: Any, shift: Any) -> Any:
        return functional.softmax(functional.layer_norm(x, (WIDTH,), scale, shift), -1)

    return training(function, (x, scale, shift), cotangent)


def _cross_entropy(module: Any) -> Run:
    logits = module.from_numpy(normal(ROWS, CLASSES)).requires_grad_()
    target = module.from_numpy(positions(ROWS, below=CLASSES))
    return training(module.nn.functional.cross_entropy, (logits, target))


def _attention(module: Any) -> Run:
    *inputs, cotangent = (
        module.from_numpy(normal(BATCH, HEADS, TOKENS, HEAD, seed=s)) for s in range(4)
    )
    for t in inputs:
        t.requires_grad_()
    return training(module.nn.functional.scaled_dot_product_attention, inputs, cotangent)


_ARRAY = 4 * ROWS * WIDTH
_LOGITS = 4 * ROWS * CLASSES
_HEADS = 4 * BATCH * HEADS * TOKENS * HEAD

COMPOSITES = (
    # Each of the two reads its input and writes its output; backwards, norm and softmax read two
    # arrays each and write one.
    Workload(
        "layer_norm softmax train",
        _norm_softmax,
        0.8,
        0.5,
        read=6 * _ARRAY,
        written=4 * _ARRAY,
        resident=6 * _ARRAY,
    ),
    # The logits are read in both directions; their gradient is written.
    Workload(
        "cross_entropy train",
        _cross_entropy,
        0.8,
        0.5,
        read=2 * _LOGITS,
        written=_LOGITS,
        resident=2 * _LOGITS,
    ),
    # Two products forward; backward the scores once more and a product for each of the four
    # gradients (scores' weights, queries, keys, values).
    Workload(
        "attention train",
        _attention,
        1.0,
        0.7,
        read=9 * _HEADS,
        written=4 * _HEADS,
        flops=7 * 2 * BATCH * HEADS * TOKENS * TOKENS * HEAD,
        resident=8 * _HEADS,
    ),
)
