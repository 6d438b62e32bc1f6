"""Compiled transforms, and transforms of compiled functions, beside the same without a program."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import undertow as ut
from compiled_ops import same
from undertow.compiled.function import CompileError
from undertow.errors import UnsupportedError
from undertow.func import (
    functional_call,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacrev,
    jet,
    jvp,
    laplacian,
    linearize,
    vjp,
    vmap,
)
from undertow.utils._pytree import tree_flatten

F = ut.nn.functional
CALLS = 6  # the fourth is the first that runs as a program


def data(i: int, *shape: int) -> ut.Tensor:
    return ut.tensor(np.random.default_rng(i).standard_normal(shape).astype("f4"))


W = data(0, 4, 3)


def number(x: Any) -> Any:
    return (x @ W.T).tanh().sum()


def vector(x: Any) -> Any:
    return (x @ W.T).sin()


def changing(x: Any) -> Any:
    y = x.clone()
    y[0] = y[1] * 2
    return y.mul_(3).sin()


def dropped(x: Any) -> Any:
    return F.dropout(x, 0.5) * ut.rand(3)


def sample_loss(w: Any, x: Any, y: Any) -> Any:
    hidden = F.max_pool2d(F.relu(F.conv2d(x[None], w["kernel"], padding=1)), 2)
    return F.cross_entropy(F.linear(hidden.flatten(1), w["last"]), y[None])


NET = ut.nn.Sequential(ut.nn.Linear(3, 4), ut.nn.Tanh(), ut.nn.LayerNorm(4), ut.nn.Linear(4, 2))
PARAMETERS = {name: p.detach().clone() for name, p in NET.named_parameters()}


def module_loss(parameters: Any, x: Any) -> Any:
    return (functional_call(NET, parameters, (x,)) ** 2).sum()


TRANSFORMED: dict[str, tuple[Callable[..., Any], Any]] = {
    "vmap": (vmap(number), [(5, 3)]),
    "grad": (grad(number), [(3,)]),
    "vmap of grad": (vmap(grad(number)), [(5, 3)]),
    "grad of vmap": (grad(lambda x: vmap(number)(x).sum()), [(5, 3)]),
    "vmap of vmap": (vmap(vmap(lambda a: a.sin() * 2)), [(5, 3)]),
    "jvp": (lambda x, v: jvp(vector, (x,), (v,)), [(3,), (3,)]),
    "vmap of jvp": (vmap(lambda x, v: jvp(vector, (x,), (v,))), [(5, 3), (5, 3)]),
    "jvp of vmap": (lambda x, v: jvp(vmap(vector), (x,), (v,)), [(5, 3), (5, 3)]),
    "jvp of grad": (lambda x, v: jvp(grad(number), (x,), (v,)), [(3,), (3,)]),
    "grad of jvp": (grad(lambda x, v: jvp(number, (x,), (v,))[1]), [(3,), (3,)]),
    "vjp": (lambda x, g: vjp(vector, x)[1](g), [(3,), (4,)]),
    "linearize": (lambda x, v: linearize(vector, x)[1](v), [(3,), (3,)]),
    "jacrev": (jacrev(vector, chunk_size=3), [(3,)]),
    "jacfwd": (jacfwd(vector), [(3,)]),
    "hessian": (hessian(number), [(3,)]),
    "hvp": (lambda x, v: hvp(number, (x,), (v,)), [(3,), (3,)]),
    "jet": (lambda x, v: jet(vector, (x,), (v,), 4), [(3,), (3,)]),
    "laplacian": (laplacian(number), [(3,)]),
    "changes in place": (vmap(changing), [(5, 3)]),
    "random, different": (vmap(dropped, randomness="different"), [(5, 3)]),
    "random, the same": (vmap(dropped, randomness="same"), [(5, 3)]),
    "samples' gradients": (
        lambda kernel, last, x: vmap(grad(sample_loss), (None, 0, 0))(
            {"kernel": kernel, "last": last}, x, ut.arange(5) % 4
        ),
        [(2, 1, 3, 3), (4, 18), (5, 1, 6, 6)],
    ),
    "a module": (lambda x: vmap(grad(module_loss), (None, 0))(PARAMETERS, x), [(5, 3)]),
    "cond": (vmap(lambda x: ut.cond(x.sum() > 0, ut.sin, ut.exp, (x,))), [(5, 3)]),
    "scan": (lambda x: ut.scan(lambda c, x: (c + x.sin(), c * x), ut.zeros(3), x), [(5, 3)]),
    "associative scan": (lambda x: ut.associative_scan(lambda a, b: a * b, x, 0), [(5, 3)]),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_compiled_transforms(name: str) -> None:
    """As a program that nothing keeps from it, on other data in each call, also after reset."""
    function, shapes = TRANSFORMED[name]
    compiled = ut.compile(function, fullgraph=True)
    for call in range(CALLS):
        args = [data(100 * call + i, *shape) for i, shape in enumerate(shapes)]
        ut.manual_seed(call)
        expected = tree_flatten(function(*args))[0]
        ut.manual_seed(call)
        found = tree_flatten(compiled(*args))[0]
        assert len(found) == len(expected)
        assert all(map(same, found, expected)), call
    assert "calls ran as this program" in compiled.explain()


def test_backward_of_compiled_vmap() -> None:
    """What a compiled transform returns has a history, whose backward is a part of the program."""
    function = vmap(number)
    compiled = ut.compile(function)
    for call in range(CALLS):
        x, y = (data(call, 5, 3).requires_grad_() for _ in range(2))
        function(x).pow(2).sum().backward()
        compiled(y).pow(2).sum().backward()
        assert same(x.grad, y.grad)
    assert "calls ran as this program" in compiled.explain()


_OF_COMPILED: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "vmap": vmap,
    "vmap of grad": lambda f: vmap(grad(lambda x: f(x).sum())),
    "grad": lambda f: grad(lambda x: f(x).sum()),
    "jvp": lambda f: lambda x: jvp(f, (x,), (x * 2,)),
    "jacrev": jacrev,
    "jacfwd": jacfwd,
    "hessian": hessian,
    "vjp": lambda f: lambda x: vjp(f, x)[1](x @ W.T),
    "vmap of vjp": lambda f: lambda x: vmap(vjp(f, x)[1])(ut.eye(8).reshape(8, 2, 4)),
    "jvp of vjp": lambda f: lambda x: jvp(vjp(f, x)[1], (x @ W.T,), (x @ W.T,)),
    "linearize": lambda f: lambda x: linearize(f, x)[1](x),
    "jet": lambda f: lambda x: jet(f, (x,), (x * 2,), 3),
    "laplacian": lambda f: laplacian(lambda x: f(x).sum()),
    "gradient of a gradient": lambda f: grad(lambda x: grad(lambda x: f(x).sum())(x).sum()),
}


@pytest.mark.parametrize("name", _OF_COMPILED)
def test_transforms_of_compiled(name: str) -> None:
    """Before and after there is a program for it, which only numbers without a transform take."""
    transform = _OF_COMPILED[name]
    compiled = ut.compile(vector)
    expected = tree_flatten(transform(vector)(data(1, 2, 3)))[0]
    for call in range(2 * CALLS):
        found = tree_flatten(transform(compiled)(data(1, 2, 3)))[0]
        assert len(found) == len(expected)
        for f, e in zip(found, expected, strict=True):
            ut.testing.assert_close(f, e)
        assert same(compiled(data(call, 2, 3)), vector(data(call, 2, 3)))
    assert "calls ran as this program" in compiled.explain()


def test_transformed_backward_draws_no_second_time() -> None:
    """The backward of a compiled function that drew numbers cannot be mapped: no other numbers."""
    compiled = ut.compile(lambda x: F.dropout(x, 0.5))
    x = data(1, 3).requires_grad_()
    for _ in range(CALLS):
        y = compiled(x)
        y.sum().backward()
    y = compiled(x)
    assert y.grad_fn.name() == "CompiledBackward0"
    with pytest.raises(UnsupportedError, match="draws random numbers"):
        vmap(lambda g: ut.autograd.grad(y, x, g, retain_graph=True), loop=False)(ut.eye(3))


def test_refused() -> None:
    """What no program can do runs eagerly, or is an error that says why."""
    x = data(1, 5, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for function, why in (
            (vmap(lambda x: x * x.sum().item()), "elements of a tensor are read"),
            (vmap(lambda x: x * ut.rand(3), randomness="same", chunk_size=2), "a generator"),
        ):
            full = ut.compile(function, fullgraph=True)
            with pytest.raises(CompileError, match=why):
                _ = [full(x) for _ in range(CALLS)]
            compiled = ut.compile(function)
            for call in range(CALLS):
                ut.manual_seed(call)
                expected = function(x)
                ut.manual_seed(call)
                assert same(compiled(x), expected)
