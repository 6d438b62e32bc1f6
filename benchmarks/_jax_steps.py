"""Some steps of compile.py in JAX: functions of state and batch, jitted, the state donated."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np


def _random(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def _layers(sizes: list[int]) -> list[Any]:
    return [
        (_random(i, a, b) / a**0.5, np.zeros(b, np.float32))
        for i, (a, b) in enumerate(itertools.pairwise(sizes))
    ]


def _apply(np_: Any, layers: Any, x: Any, activation: Callable[[Any], Any]) -> Any:
    for i, (w, b) in enumerate(layers):
        x = x @ w + b
        if i < len(layers) - 1:
            x = activation(x)
    return x


def _adam(jax: Any, loss_of: Callable[..., Any], layers: Any) -> tuple[Any, Any]:
    """A step of Adam over (parameters, two moments, count), and the state to begin with."""
    tree, np_ = jax.tree_util.tree_map, jax.numpy

    def step(state: Any, *batch: Any) -> Any:
        params, m, v, t = state
        loss, grads = jax.value_and_grad(loss_of)(params, *batch)
        t = t + 1
        m = tree(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = tree(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
        rate = 1e-3 / (1 - 0.9**t)
        scale = (1 - 0.999**t) ** 0.5
        params = tree(lambda p, m, v: p - rate * m / (np_.sqrt(v) / scale + 1e-8), params, m, v)
        return (params, m, v, t), loss

    zeros = tree(np.zeros_like, layers)
    return step, (layers, zeros, tree(np.copy, zeros), np.float32(0))


def chain(jax: Any) -> Any:
    def loss(x: Any, w: Any) -> Any:
        for _ in range(100):
            x = x * w
        return x.sum()

    x = np.full((4, 4), 1.01, np.float32)
    return lambda x, w: (x, jax.grad(loss)(x, w)), x, (np.full((4, 4), 0.99, np.float32),)


def small_mlp(jax: Any) -> Any:
    def loss(params: Any, x: Any, y: Any) -> Any:
        return ((_apply(jax.numpy, params, x, jax.nn.relu) - y) ** 2).mean()

    return *_adam(jax, loss, _layers([32, 64, 64, 1])), (_random(0, 16, 32), _random(1, 16, 1))


def mlp(jax: Any) -> Any:
    def loss(params: Any, x: Any, y: Any) -> Any:
        out = jax.nn.log_softmax(_apply(jax.numpy, params, x, jax.nn.relu))
        return -out[jax.numpy.arange(128), y].mean()

    batch = _random(0, 128, 784), np.arange(128) % 10
    return *_adam(jax, loss, _layers([784, 512, 256, 10])), batch


def nets(jax: Any) -> Any:
    np_ = jax.numpy

    def loss(models: Any, x: Any) -> Any:
        outs = [np_.tanh(_apply(np_, m, x, np_.tanh)) for m in models]
        return sum([(out**2).mean() for out in outs])

    models = [_layers([32] * 4) for _ in range(32)]
    return (
        lambda models, x: (models, jax.value_and_grad(loss)(models, x)),
        models,
        (_random(0, 64, 32),),
    )


def gelu(jax: Any) -> Any:
    def loss(x: Any) -> Any:
        inner = 0.7978845608 * (x + 0.044715 * x * x * x)
        return (0.5 * x * (1 + jax.numpy.tanh(inner))).sum()

    return lambda state, x: (state, jax.grad(loss)(x)), np.float32(0), (_random(0, 4096, 1024),)


def penalty(jax: Any) -> Any:
    np_ = jax.numpy

    def loss(params: Any, x: Any) -> Any:
        def out(x: Any) -> Any:
            return _apply(np_, params, x, np_.tanh)

        g = jax.grad(lambda x: out(x).sum())(x)
        norm = np_.sqrt((g * g).sum(1))
        return out(x).mean() + 10 * ((norm - 1) ** 2).mean()

    return *_adam(jax, loss, _layers([128, 256, 256, 1])), (_random(0, 64, 128),)


STEPS = {f.__name__: f for f in (chain, small_mlp, mlp, nets, gelu, penalty)}


def run_of(jax: Any, name: str) -> Callable[[], None]:
    """A call of a step that waits for its results, of which each call makes new ones."""
    step, state, batch = STEPS[name](jax)
    jitted = jax.jit(step, donate_argnums=0)
    held = [jax.tree_util.tree_map(jax.numpy.asarray, state)]
    batch = jax.tree_util.tree_map(jax.numpy.asarray, batch)

    def run() -> None:
        held[0], out = jitted(held[0], *batch)
        jax.block_until_ready(out)

    return run
