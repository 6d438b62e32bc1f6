"""`undertow.func`: transforms of functions against written derivatives, alone and nested."""

from __future__ import annotations

from typing import Any

import pytest

import undertow as ut
from undertow.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)
from undertow.utils import _pytree

close = ut.testing.assert_close


def randn(*shape: int) -> ut.Tensor:
    return ut.randn(shape, dtype=ut.float64)


# Derivatives ----------------------------------------------------------------------------------
def test_grad_of_trees() -> None:
    """By one argument or several, through dicts and tuples, with something beside the value."""
    w, b, x = {"w": randn(2, 3)}, [randn(2)], randn(3)

    def loss(w: Any, b: Any, x: Any) -> Any:
        out = w["w"] @ x + b[0]
        return (out**2).sum(), out

    (gw, gb), aux = grad(loss, argnums=(0, 1), has_aux=True)(w, b, x)
    out = w["w"] @ x + b[0]
    close(gw, {"w": 2 * ut.outer(out, x)})
    close(gb, [2 * out])
    close(aux, out)
    assert not aux.requires_grad
    found, (value, _) = grad_and_value(loss, -1, has_aux=True)(w, b, x)
    close(found, 2 * w["w"].T @ out)
    close(value, (out**2).sum())
    assert not found.requires_grad


def test_grad_of_grad_and_of_what_is_around() -> None:
    """Nested transforms, and plain autograd through them: by arguments, and by what is around."""
    x = randn()
    close(grad(grad(grad(lambda x: x**4)))(x), 24 * x)
    w = randn().requires_grad_()
    a = randn().requires_grad_()
    first = grad(lambda x: w * x**3)(a)
    close(first, 3 * w * a**2)
    close(ut.autograd.grad(first, (a, w)), (6 * w * a, 3 * a**2))
    with ut.no_grad():
        assert not grad(lambda x: w * x**3)(a).requires_grad
    close(grad(lambda x: x * grad(lambda y: x * y**2)(x))(a.detach()), 6 * a.detach() ** 2)


def test_where_nothing_depends() -> None:
    """A derivative that is zero is zeros."""
    close(grad(lambda x: ut.tensor(3.0))(ut.ones(2)), ut.zeros(2))
    close(jacrev(lambda x: ut.ones(3))(ut.ones(2)), ut.zeros(3, 2))
    close(jvp(lambda x: ut.ones(3), (ut.ones(2),), (ut.ones(2),))[1], ut.zeros(3))
    close(jacrev(lambda x: x[:0])(ut.ones(2)), ut.zeros(0, 2))


def test_products_with_the_jacobian() -> None:
    """vjp, jvp and linearize agree with the Jacobian, whose trees follow outputs and arguments."""
    x, y = randn(3), randn(2)

    def f(x: Any, y: Any) -> Any:
        return {"a": ut.outer(x.sin(), y), "b": x.sum() * y}

    def flat(tree: Any) -> Any:
        return ut.cat([t.reshape(-1) for t in _pytree.tree_leaves(tree)])

    jac = jacrev(f, (0, 1))(x, y)
    assert jac["a"][0].shape == (3, 2, 3)
    assert jac["b"][1].shape == (2, 2)
    close(jac, jacfwd(f, (0, 1))(x, y))
    whole = ut.cat(
        [ut.cat([j.reshape(-1, t.numel()) for j, t in zip(jac[k], (x, y), strict=True)], 1)
         for k in "ab"]
    )  # fmt: skip
    u, (p, q) = {"a": randn(3, 2), "b": randn(2)}, (randn(3), randn(2))
    out, pull = vjp(f, x, y)
    close(out, f(x, y))
    close(flat(pull(u)), flat(u) @ whole)
    out, push = linearize(f, x, y)
    close(out, f(x, y))
    close(flat(push(p, q)), whole @ ut.cat([p, q]))
    close(jvp(f, (x, y), (p, q))[1], push(p, q))
    close(hessian(lambda x: (x**3).sum())(x), ut.diag(6 * x))
    close(grad(lambda x: jvp(ut.sin, (x,), (p,))[1].sum())(x), -x.sin() * p)


def test_derivatives_refuse() -> None:
    with pytest.raises(ValueError, match=r"\[grad\] the function must return one number.*\(2,\)"):
        grad(lambda x: x)(ut.ones(2))
    with pytest.raises(TypeError, match=r"\[grad\] differentiates by tensors, got float"):
        grad(lambda x: x)(1.0)
    with pytest.raises(ValueError, match=r"argnums=2, but there are 1 arguments"):
        grad(lambda x: x, 2)(ut.ones(()))
    with pytest.raises(ValueError, match=r"\[vjp\] a cotangent of \(3,\) does not fit \(2,\)"):
        vjp(ut.sin, ut.ones(2))[1](ut.ones(3))
    with pytest.raises(TypeError, match=r"has_aux=True wants"):
        grad(lambda x: x, has_aux=True)(ut.ones(()))


# Batches --------------------------------------------------------------------------------------
def test_vmap_dims() -> None:
    """Any dimension in and out, trees, None for what is not mapped, nested maps."""
    x, y = randn(2, 5, 3), randn(3)
    found = vmap(lambda x, y: {"s": x * y, "t": (x.sum(),)}, in_dims=(1, None), out_dims=1)
    with pytest.raises(IndexError):
        found(x, y)  # a sum has no second dimension to put it
    found = vmap(lambda x, y: {"s": x * y}, in_dims=(1, None), out_dims=1)(x, y)
    close(found["s"], x * y)
    close(vmap(lambda d: d["a"] + d["b"], in_dims=({"a": 0, "b": None},))({"a": x, "b": y}), x + y)
    close(vmap(vmap(ut.dot, (0, None)), (0, None))(x, y), x @ y)
    close(vmap(lambda x, *, scale: x * scale.sum())(x, scale=y), x * y.sum())
    close(vmap(lambda x, dim: x.sum(dim))(x, dim=1), x.sum(2))
    one, two = vmap(lambda x: (x, "the same"), out_dims=(0, None))(x)
    close(one, x)
    assert two == "the same"


def test_vmap_of_what_looks_at_values() -> None:
    """Such a function is called for every element: with a warning, unless that was said."""

    def size(x: Any) -> Any:
        return x if x[0] > 0 else -x

    x, expected = ut.tensor([[-1.0], [2.0]]), ut.tensor([[1.0], [2.0]])
    with pytest.warns(UserWarning, match="called size once for every element.*value"):
        close(vmap(size)(x), expected)
    close(vmap(size, loop=True)(x), expected)
    with pytest.raises(NotImplementedError, match=r"\[vmap\].*asks for the value.*ut.where"):
        vmap(size, loop=False)(x)


def test_vmap_of_nothing() -> None:
    """A batch of size 0 has a result of the right shape."""
    found = vmap(lambda x: (x @ x.T, x.sum()))(ut.ones(0, 2, 3))
    assert [t.shape for t in found] == [(0, 2, 2), (0,)]


def test_vmap_and_gradients() -> None:
    """Per-sample gradients, and a gradient through a map."""
    net = ut.nn.Sequential(ut.nn.Linear(3, 4), ut.nn.Tanh(), ut.nn.Linear(4, 1)).double()
    parameters = {k: v.detach() for k, v in net.named_parameters()}
    x = randn(5, 3)

    def loss(parameters: Any, x: Any) -> Any:
        return functional_call(net, parameters, (x,)).square().sum()

    each = vmap(grad(loss), in_dims=(None, 0))(parameters, x)
    whole = grad(lambda p: vmap(loss, (None, 0))(p, x).sum())(parameters)
    for name, g in each.items():
        assert g.shape == (5, *parameters[name].shape)
        close(g.sum(0), whole[name])
    net(x).square().sum().backward()
    close(whole["0.weight"], net[0].weight.grad)


def test_vmap_of_an_ensemble() -> None:
    layers = [ut.nn.Linear(3, 2) for _ in range(4)]
    parameters, buffers = stack_module_state(layers)
    x = ut.randn(5, 3)
    found = vmap(lambda p, b: functional_call(layers[0], (p, b), (x,)))(parameters, buffers)
    close(found, ut.stack([layer(x) for layer in layers]))
    found.sum().backward()
    close(parameters["bias"].grad, ut.full((4, 2), 5.0))


def test_vmap_randomness() -> None:
    x = ut.zeros(3)
    with pytest.raises(ValueError, match='say randomness="different"'):
        vmap(lambda x: x + ut.rand(()))(x)
    assert vmap(lambda x: x + ut.rand(()), randomness="different")(x).unique().numel() == 3
    assert vmap(lambda x: x + ut.rand(()), randomness="same")(x).unique().numel() == 1
    own = ut.Generator()
    with pytest.raises(ValueError, match="drew random numbers"):
        vmap(lambda x: x + ut.rand((), generator=own))(x)
    drawn = vmap(lambda x: x + ut.rand((), generator=own), randomness="same")(x)
    assert drawn.unique().numel() == 1
    twice = vmap(vmap(lambda x: x + ut.rand(()), randomness="different"), randomness="same")
    rows = twice(ut.zeros(2, 3))
    assert rows.unique().numel() == 3
    close(rows[0], rows[1])


@pytest.mark.parametrize(
    "message, call",
    [
        ("nothing to map", lambda: vmap(ut.sin, None)(ut.ones(2))),
        (r"different sizes: \[2, 3\]", lambda: vmap(ut.add)(ut.ones(2), ut.ones(3))),
        ("only tensors are mapped", lambda: vmap(ut.add)(ut.ones(2), 3)),
        ("nothing to map", lambda: vmap(lambda *, x: x)(x=ut.ones(2))),
        ("differs between elements", lambda: vmap(ut.sin, 0, None)(ut.arange(2.0))),
        ("out_dims are ints or None, got 'lol'", lambda: vmap(ut.sin, 0, "lol")(ut.ones(2))),
        ("that is not mapped", lambda: vmap(ut.Tensor.add_, (None, 0))(ut.ones(2), ut.ones(2))),
        ("has no dimension 1", lambda: vmap(ut.sin, 1)(ut.ones(2))),
        ("must return tensors, got float", lambda: vmap(lambda x: 1.0)(ut.ones(2))),
        ("another structure than the arguments", lambda: vmap(ut.add, (0,))(ut.ones(2), 1)),
        ("another structure than what", lambda: vmap(ut.sin, 0, (0, 0))(ut.ones(2))),
        ("randomness is one of", lambda: vmap(ut.sin, randomness="some")),
    ],
)  # fmt: skip
def test_vmap_refuses(message: str, call: Any) -> None:
    with pytest.raises((ValueError, TypeError, NotImplementedError), match=rf"\[vmap\].*{message}"):
        call()


# Trees ----------------------------------------------------------------------------------------
def test_trees() -> None:
    from collections import OrderedDict, defaultdict, namedtuple

    Point = namedtuple("Point", "x y")
    tree = {"a": Point(1, [2, None]), "b": OrderedDict(c=(3,)), "d": defaultdict(int, e=4)}
    leaves, spec = _pytree.tree_flatten(tree)
    assert leaves == [1, 2, None, 3, 4]
    again = _pytree.tree_unflatten(leaves, spec)
    assert again == tree
    assert type(again["a"]) is Point
    assert again["d"].default_factory is int
    assert _pytree.tree_map_only(int, lambda x: x + 1, tree)["a"] == Point(2, [3, None])
    with pytest.raises(ValueError, match=r"\[tree_unflatten\] the tree has 5 leaves, got 2"):
        _pytree.tree_unflatten([1, 2], spec)
    with pytest.raises(ValueError, match=r"\[tree_map\] the trees differ"):
        _pytree.tree_map(max, [1], (1,))


def test_transforms_inside_inference_mode() -> None:
    """They compute as outside of it, with arguments that were made there as well."""
    outside = randn(3)
    with ut.inference_mode():
        for x in (outside, randn(3)):
            close(grad(lambda v: (v**3).sum())(x), 3 * x**2)
            close(jacrev(grad(lambda v: (v**3).sum()))(x), ut.diag(6 * x))
            out, pull = vjp(lambda v: (v**2).sum(), x)
            close(pull(ut.ones_like(out))[0], 2 * x)
            close(jvp(lambda v: v**2, (x,), (ut.ones_like(x),))[1], 2 * x)
            close(vmap(grad(lambda v: v**2))(x), 2 * x)
            assert ut.is_inference_mode_enabled()
            assert not grad(lambda v: (v**3).sum())(x).requires_grad

    def partly(x: ut.Tensor) -> ut.Tensor:
        with ut.inference_mode():
            constant = x**2
        return (x - constant).sum()

    with ut.inference_mode():
        close(grad(partly)(outside), ut.ones_like(outside))


def test_vjp_function_records_as_it_is_called() -> None:
    x = ut.tensor(3.0, requires_grad=True)
    out, pull = vjp(lambda x: x**2, x)
    with ut.no_grad():
        assert not pull(ut.tensor(1.0))[0].requires_grad
    assert out.requires_grad
    with ut.no_grad():
        out, pull = vjp(lambda x: x**2, x)
    assert not out.requires_grad
    close(ut.autograd.grad(pull(ut.tensor(1.0))[0], x)[0], ut.tensor(2.0))


@pytest.mark.parametrize(
    ("message", "call"),
    [
        ("int or a tuple", lambda x: grad(ut.mul, argnums=[0])(x, x)),
        ("int or a tuple", lambda x: grad(ut.mul, argnums=("0",))(x, x)),
        ("int or a tuple", lambda x: jacrev(ut.sin, argnums=0.0)(x)),
        ("unique", lambda x: grad(ut.mul, argnums=(0, -2))(x, x)),
        ("empty", lambda x: jacrev(ut.sin, argnums=())(x)),
        ("are tuples", lambda x: jvp(ut.sin, x, (x,))),
        ("are tuples", lambda x: jvp(ut.sin, (x,), [x])),
        ("structure", lambda x: jvp(ut.sin, (x,), (x, x))),
        ("at least one tensor", lambda x: jvp(ut.sin, (), ())),
        ("at least one tensor", lambda x: jvp(ut.sin, ((),), ((),))),
        ("at least one tensor", lambda x: jacrev(lambda _: ())(x)),
        ("strict", lambda x: jvp(lambda _: ut.ones(2), (x,), (x,), strict=True)),
    ],
)
def test_derivatives_check_their_arguments(message: str, call: Any) -> None:
    with pytest.raises(RuntimeError, match=rf"\[(grad|jacrev|jvp)\].*{message}"):
        call(ut.tensor(1.0))


def test_stacked_modules_want_gradients_alike() -> None:
    layers = [ut.nn.Linear(2, 2) for _ in range(2)]
    layers[0].weight.requires_grad_(False)
    with pytest.raises(RuntimeError, match="'weight' requires gradients in some"):
        stack_module_state(layers)


@pytest.mark.parametrize("transform", [ut.func.jacrev, ut.func.jacfwd, ut.func.hessian])
def test_jacobians_are_real(transform: Any) -> None:
    with pytest.raises(RuntimeError, match="real inputs"):
        transform(lambda z: z.abs())(ut.ones(1, dtype=ut.complex64))
    with pytest.raises(RuntimeError, match="real outputs"):
        transform(lambda x: x * 1j)(ut.ones(1))
    parts = transform(lambda x: ut.view_as_complex(x).abs().sum())(ut.ones(1, 2))
    assert not parts.is_complex()
