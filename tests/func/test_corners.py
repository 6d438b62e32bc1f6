"""Corners of transforms where a wrong answer would be silent; values by hand, or by torch."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.backends.dual import Level
from undertow.errors import GradientError
from undertow.func import hessian, jvp, vmap

ONES = ut.ones(3)


def values(t: Any) -> Any:
    return t.detach().numpy().tolist()


@pytest.mark.parametrize("shift", [lambda x: x + 1, lambda x: 1 + x, lambda x: x - 2])
def test_a_tangent_that_passes_through_is_a_copy(shift: Any) -> None:
    """Who writes into `x + 1` does not change the tangent of x."""

    def f(x: Any) -> Any:
        shift(x).mul_(2)
        return x * 1

    seed = ut.ones(3)
    assert values(jvp(f, (ONES,), (seed,))[1]) == [1, 1, 1]
    assert values(seed) == [1, 1, 1]


class Cube(ut.autograd.Function):
    """A derivative inside of a custom forward."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return jvp(lambda y: y**3, (x,), (ut.ones_like(x),))[1]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 6 * x


def test_levels_that_begin_inside_of_a_custom_forward() -> None:
    x = ut.tensor([1.0, 2.0, 3.0])
    value, slope = jvp(Cube.apply, (x,), (ONES,))
    assert values(value) == [3, 12, 27]
    assert values(slope) == [6, 12, 18]


class Square(ut.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 2 * x


def test_outer_tangents_go_through_custom_functions() -> None:
    x = ut.tensor([1.0, 2.0, 3.0])
    inner = lambda x: jvp(Square.apply, (x,), (ONES,))[0]
    assert values(jvp(inner, (x,), (ONES,))[1]) == [2, 4, 6]


class Drop(ut.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        mask = (ut.rand(x.shape) > 0.5).to(x.dtype)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (mask,) = ctx.saved_tensors
        return g * mask


def test_a_custom_forward_that_draws_has_one_mask() -> None:
    ut.manual_seed(0)
    value, slope = jvp(Drop.apply, (ut.ones(64),), (ut.ones(64),))
    assert values(value) == values(slope)


def test_results_of_vmap_have_memory_of_their_own() -> None:
    x = ut.ones(3, requires_grad=True)
    z = vmap(lambda x: x.exp())(x)
    z.add_(1)
    z.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.full(3, np.e), rtol=1e-6)
    x.grad = None
    p, q = vmap(lambda x: (lambda y: (y, y * y))(x * 2))(x)
    p.add_(1)
    q.sum().backward()
    assert values(x.grad) == [8, 8, 8]


def test_the_loop_does_not_write_twice() -> None:
    x = ut.ones(3)

    def f(x: Any) -> Any:
        x.add_(1)
        return x * 2 if x > 0 else x

    with pytest.raises(RuntimeError, match="the value of an element"):
        vmap(f)(x)
    assert values(x) == [2, 2, 2]


def test_the_same_numbers_in_every_chunk() -> None:
    found = vmap(lambda x: x * 0 + ut.rand(()), randomness="same", chunk_size=2)(ut.ones(5))
    assert len(set(values(found))) == 1


def test_memory_that_elements_share_is_not_written() -> None:
    shared = ut.ones(2).expand(3, 2)
    with pytest.raises(RuntimeError):
        vmap(lambda x, y: x.add_(y))(shared, ut.arange(3.0))
    assert values(shared[0]) == [1, 1]


def test_resized_and_detached_in_place() -> None:
    with pytest.raises(GradientError, match="resize"):
        jvp(lambda x: x.clone().resize_(2), (ONES,), (ONES,))
    found = jvp(lambda x: x.clone().detach_() * x, (ONES * 3,), (ONES,))[1]
    assert values(found) == [3, 3, 3]


def test_a_recorded_tensor_is_copied_into_a_mapped_one() -> None:
    a = ut.ones(3, requires_grad=True)
    vmap(lambda x: x.new_zeros(3).copy_(a))(ut.arange(2.0)).sum().backward()
    assert values(a.grad) == [2, 2, 2]


def test_hessian_of_a_function_that_fills_a_tensor() -> None:
    def f(x: Any) -> Any:
        out = ut.zeros(2)
        out[0] = x[0] * 2
        return (out**3).sum()

    assert values(hessian(f)(ut.ones(2))) == [[48, 0], [0, 0]]


def test_levels_are_freed() -> None:
    for _ in range(5):
        jvp(ut.sin, (ONES,), (ONES,))
    gc.collect()
    assert not [o for o in gc.get_objects() if type(o) is Level]


def test_a_mapped_number_indexes() -> None:
    table = ut.tensor([5.0, 6.0, 7.0])
    assert values(vmap(lambda i: table[i], loop=False)(ut.tensor([2, 0]))) == [7, 5]
