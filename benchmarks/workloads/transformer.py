"""A transformer block, forward and backward: attention and a wide layer, each behind a norm."""

from __future__ import annotations

from typing import Any

from ._workload import Run, Workload, normal, training

BATCH, TOKENS, WIDTH, HEADS = 8, 128, 256, 8
_SHAPES = (
    (WIDTH,),
    (WIDTH,),
    (3 * WIDTH, WIDTH),
    (3 * WIDTH,),
    (WIDTH, WIDTH),
    (WIDTH,),
    (WIDTH,),
    (WIDTH,),
    (4 * WIDTH, WIDTH),
    (4 * WIDTH,),
    (WIDTH, 4 * WIDTH),
    (WIDTH,),
)


def _block(module: Any) -> Run:
    f = module.nn.functional
    given = [normal(*shape, seed=i) * shape[-1] ** -0.5 for i, shape in enumerate(_SHAPES)]
    weights = [module.from_numpy(w.astype("float32")).requires_grad_() for w in given]
    x, cotangent = (module.from_numpy(normal(BATCH, TOKENS, WIDTH, seed=s)) for s in (20, 21))

    def function(x: Any, *weights: Any) -> Any:
        scale, shift, to_heads, heads_bias, from_heads, bias = weights[:6]
        h = f.layer_norm(x, (WIDTH,), scale, shift)
        heads = f.linear(h, to_heads, heads_bias).reshape(BATCH, TOKENS, 3, HEADS, -1)
        q, k, v = heads.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = f.scaled_dot_product_attention(q, k, v).transpose(1, 2)
        x = x + f.linear(mixed.reshape(BATCH, TOKENS, WIDTH), from_heads, bias)
        scale, shift, widen, wide_bias, narrow, bias = weights[6:]
        h = f.layer_norm(x, (WIDTH,), scale, shift)
        return x + f.linear(f.gelu(f.linear(h, widen, wide_bias)), narrow, bias)

    return training(function, (x.requires_grad_(), *weights), cotangent)


# Multiply-adds of the four layers, and of scores and mixing in attention; backward twice that.
_LAYERS = BATCH * TOKENS * WIDTH * (3 + 1 + 4 + 4) * WIDTH
_SCORES = 2 * BATCH * TOKENS * TOKENS * WIDTH

TRANSFORMER = (
    Workload("transformer block train", _block, 1.0, 0.8, flops=3 * 2 * (_LAYERS + _SCORES)),
)
