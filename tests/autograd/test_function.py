"""Functions whose derivative the user writes."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.autograd import Function, grad, gradcheck, gradgradcheck
from undertow.autograd.function import once_differentiable
from undertow.autograd.graph import saved_tensors_hooks
from undertow.errors import (
    ArgumentError,
    DTypeError,
    FreedError,
    GradientError,
    InplaceError,
    VersionError,
)


def leaf(values: Any, **how: Any) -> ut.Tensor:
    return ut.tensor(values, requires_grad=True, **how)


def double(values: Any) -> ut.Tensor:
    return ut.tensor(values, dtype=ut.float64, requires_grad=True)


class Cube(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 3 * x * x


class SplitCube(Function):
    @staticmethod
    def forward(x: Any, factor: float = 1.0) -> Any:
        return x * x * x * factor

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, ctx.factor = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 3 * ctx.factor * x * x, None


class Exp(Function):
    """Saves its output."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (y,) = ctx.saved_tensors
        return g * y


class SinCos(Function):
    """Two outputs, both saved."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        s, c = x.sin(), x.cos()
        ctx.save_for_backward(s, c)
        return s, c

    @staticmethod
    def backward(ctx: Any, gs: Any, gc: Any) -> Any:
        s, c = ctx.saved_tensors
        return gs * c - gc * s


# The basics ----------------------------------------------------------------------------------
def test_apply_and_backward() -> None:
    x = leaf([1.0, 2.0])
    y = Cube.apply(x)
    assert y.tolist() == [1, 8]
    assert y.requires_grad
    assert not y.is_leaf
    assert y.grad_fn.name() == "CubeBackward"
    assert "CubeBackward" in repr(y.grad_fn)
    y.sum().backward()
    assert x.grad.tolist() == [3, 12]


@pytest.mark.parametrize("function", [Cube, SplitCube, Exp, SinCos])
def test_derivatives_to_second_order(function: Any) -> None:
    x = double([0.5, -1.0, 2.0])
    assert gradcheck(function.apply, (x,))
    assert gradgradcheck(function.apply, (x,))
    third = lambda x: function.apply(x)[0] if function is SinCos else function.apply(x)
    y = third(x).sum()
    for _ in range(2):
        (y,) = grad(y.sum(), x, create_graph=True)
    (y,) = grad(y.sum(), x)
    expected = {
        Cube: [6, 6, 6],
        SplitCube: [6, 6, 6],
        Exp: np.exp([0.5, -1, 2]),
        SinCos: -np.cos([0.5, -1, 2]),
    }
    np.testing.assert_allclose(y.numpy(), expected[function], rtol=1e-12)


def test_setup_context_style_takes_defaults_and_keywords() -> None:
    x = leaf(2.0)
    SplitCube.apply(x, factor=2.0).backward()
    assert x.grad.item() == 24
    with pytest.raises(TypeError):
        SplitCube.apply(x, wrong=1)


def test_what_a_function_is_not() -> None:
    with pytest.warns(DeprecationWarning, match="apply"):  # as in torch
        made = Cube()
    with pytest.raises(GradientError, match="apply"):
        made(leaf(1.0))
    with pytest.raises(TypeError, match="required argument"):
        Cube.apply(y=leaf(1.0))

    class Empty(Function):
        pass

    with pytest.raises(NotImplementedError):
        Empty.apply(leaf(1.0))

    class Half(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

    with pytest.raises(NotImplementedError, match="backward"):
        Half.apply(leaf(1.0)).backward()


def test_forward_records_nothing_inside() -> None:
    modes = []

    class Look(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            modes.append(ut.is_grad_enabled())
            y = x * 2
            modes.append(y.requires_grad)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            modes.append(ut.is_grad_enabled())
            return g * 2

    y = Look.apply(leaf(1.0))
    y.backward(retain_graph=True)
    y.backward(create_graph=True)
    assert modes == [False, False, False, True]


def test_non_tensor_arguments_and_attributes() -> None:
    class Scale(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, factor: float, name: str, nothing: None) -> Any:
            ctx.factor, ctx.name_ = factor, name
            assert ctx.needs_input_grad == (True, False, False, False)
            return x * factor

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            assert ctx.name_ == "tenfold"
            return g * ctx.factor, None, None, None

    x = leaf(1.0)
    y = Scale.apply(x, 10.0, "tenfold", None)
    assert y.grad_fn.factor == 10
    assert len(y.grad_fn.next_functions) == 1
    y.backward()
    assert x.grad.item() == 10


def test_non_tensor_outputs_pass_through() -> None:
    class Info(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2, "text", None, x * 3

        @staticmethod
        def backward(ctx: Any, g: Any, text: Any, none: Any, h: Any) -> Any:
            assert text is None
            assert none is None
            return g * 2 + h * 3

    x = leaf(1.0)
    a, text, none, b = Info.apply(x)
    assert text == "text"
    assert none is None
    assert b.output_nr == 3
    (a + b * 10).backward()
    assert x.grad.item() == 32


def test_none_gradients() -> None:
    class First(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x + y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, None

    x, y = leaf(1.0), leaf(1.0)
    First.apply(x, y).backward()
    assert x.grad.item() == 1
    assert y.grad is None
    with pytest.raises(GradientError, match="not used"):
        grad(First.apply(x, y), y)


def test_extra_none_gradients_are_allowed() -> None:
    class Extra(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2, None, None

    x = leaf(1.0)
    Extra.apply(x).backward()
    assert x.grad.item() == 2


def test_gradient_for_what_is_no_tensor() -> None:
    class Wrong(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, n: int) -> Any:
            return x * n

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, g

    with pytest.raises(GradientError, match=r"\[WrongBackward\].*argument 1"):
        Wrong.apply(leaf(1.0), 2).backward()


def test_nested_arguments_with_gradients_are_an_error() -> None:
    class Total(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, others: Any) -> Any:
            return x + sum(others)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, None

    x, y = leaf(1.0), leaf(2.0)
    with pytest.raises(GradientError, match="argument 1 is a list"):
        Total.apply(x, [y])
    assert Total.apply(x, [y.detach()]).item() == 3
    with ut.no_grad():
        assert Total.apply(x, [y]).item() == 3


def test_list_result_is_an_error() -> None:
    class Listed(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return [x * 2]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    with pytest.raises(GradientError, match="tuple"):
        Listed.apply(leaf(1.0))


def test_one_element_tuple_stays_a_tuple() -> None:
    class One(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return (x * 2,)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return (g * 2,)

    (y,) = One.apply(leaf(1.0))
    assert y.requires_grad


def test_without_gradients() -> None:
    y = Cube.apply(ut.ones(2))
    assert not y.requires_grad
    with ut.no_grad():
        assert not Cube.apply(leaf(1.0)).requires_grad
    with ut.inference_mode():
        assert Cube.apply(leaf(1.0)).is_inference()


# Several outputs -----------------------------------------------------------------------------
def test_materialized_gradients() -> None:
    seen: list[Any] = []

    def make(materialize: bool) -> Any:
        class Two(Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.set_materialize_grads(materialize)
                return x * 2, (x * 3).view(1, -1)

            @staticmethod
            def backward(ctx: Any, g: Any, h: Any) -> Any:
                seen.append((g, h))
                return g * 2

        return Two.apply

    x = leaf([1.0, 2.0])
    make(True)(x)[0].sum().backward()
    assert seen[-1][1].shape == (1, 2)
    assert seen[-1][1].tolist() == [[0, 0]]
    make(False)(x)[0].sum().backward()
    assert seen[-1][1] is None


def test_backward_runs_with_zeros_when_nothing_arrives() -> None:
    """As in torch: a Function that wants zeros gets them even when every gradient is None."""

    class Stop(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return None

    x = leaf([1.0, 2.0])
    Stop.apply(Cube.apply(x)).sum().backward()
    assert x.grad.tolist() == [0, 0]


def test_mark_non_differentiable() -> None:
    class SortLike(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            mask = (x > 1).to(x.dtype)
            index = ut.tensor([0, 1])
            ctx.mark_non_differentiable(mask)
            ctx.save_for_backward(mask)
            return x * mask, mask, index

        @staticmethod
        def backward(ctx: Any, g: Any, gm: Any, gi: Any) -> Any:
            assert gm.tolist() == [0, 0]
            (mask,) = ctx.saved_tensors
            assert not mask.requires_grad
            return g * mask

    x = leaf([1.0, 2.0])
    y, mask, index = SortLike.apply(x)
    assert y.requires_grad
    assert not mask.requires_grad
    assert not index.requires_grad
    y.sum().backward(create_graph=True)
    assert x.grad.tolist() == [0, 1]


def test_the_same_output_twice() -> None:
    class Twice(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x * 2
            return y, y

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return 5 * g + 2 * h

    x = leaf([1.0, 2.0])
    a, b = Twice.apply(x)
    (a + b * 10).sum().backward()
    assert x.grad.tolist() == [22, 22]  # both are the second one, as in torch
    with pytest.raises(InplaceError):
        a.mul_(2)  # `b` has the same memory


# Saved tensors -------------------------------------------------------------------------------
def test_changed_saved_tensor() -> None:
    w = ut.tensor([1.0, 2.0])

    class Times(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensors
            return g * w, g * x

    y = Times.apply(leaf([1.0, 2.0]), w).sum()
    w.mul_(2)
    with pytest.raises(VersionError, match=r"\[TimesBackward\] saved tensor 1 of shape \(2,\)"):
        y.backward()


def test_changed_saved_output() -> None:
    y = Exp.apply(leaf([1.0, 2.0]))
    z = y.sum()
    y.mul_(2)
    with pytest.raises(VersionError, match="ExpBackward"):
        z.backward()


def test_changed_constant_output_that_is_saved() -> None:
    class Masked(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            mask = (x > 1).to(x.dtype)
            ctx.mark_non_differentiable(mask)
            ctx.save_for_backward(mask)
            return x * mask, mask

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            (mask,) = ctx.saved_tensors
            return g * mask

    y, mask = Masked.apply(leaf([1.0, 2.0]))
    mask.add_(1)
    with pytest.raises(VersionError):
        y.sum().backward()


def test_in_place_on_an_output_takes_part() -> None:
    x = double([1.0, 2.0])

    def f(x: Any) -> Any:
        y = Cube.apply(x)
        y.mul_(y.detach() * 0 + 2)
        return y

    assert gradcheck(f, (x,))
    assert gradgradcheck(f, (x,))


def test_freed_after_the_first_backward() -> None:
    x = leaf(2.0)
    y = Cube.apply(x)
    y.backward()
    with pytest.raises(FreedError, match=r"\[CubeBackward\].*retain_graph=True"):
        y.backward()
    z = Cube.apply(x)
    z.backward(retain_graph=True)
    z.backward()
    assert x.grad.item() == 36


def test_saved_tensors_release_memory() -> None:
    class Keep(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            extra = x * 5
            refs.append(weakref.ref(extra))
            ctx.save_for_backward(extra)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            assert ctx.saved_tensors[0].item() == 5
            return g * 2

    refs: list[Any] = []
    y = Keep.apply(leaf(1.0))
    assert refs[0]() is not None
    y.backward()
    assert refs[0]() is None


def test_saving_an_output_makes_no_cycle() -> None:
    gc.collect()
    gc.disable()
    try:
        y = Exp.apply(leaf([1.0]))
        node = weakref.ref(y.grad_fn)
        del y
        assert node() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("save", ["before", "after", "never"])
def test_changing_an_input_makes_no_cycle(save: str) -> None:
    """The node must not hold the tensor that it has become the history of."""

    class Double(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            if save == "before":
                ctx.save_for_backward(x)
            x.mul_(2)
            if save == "after":
                ctx.save_for_backward(x)
            constant = x > 0
            ctx.mark_non_differentiable(constant)
            references.extend([weakref.ref(ctx), weakref.ref(x), weakref.ref(constant)])
            return x, constant

        @staticmethod
        def backward(ctx: Any, g: Any, _: Any) -> Any:
            return g * 2

    references: list[Any] = []
    x = leaf([1.0])
    gc.collect()
    gc.disable()
    try:
        y, constant = Double.apply(x.clone())
        del constant
        assert references[2]() is None
        assert references[0]() is y.grad_fn
        assert grad(y, x)[0].item() == 2
        del y
        assert [r() for r in references] == [None] * 3
    finally:
        gc.enable()


def test_none_can_be_saved_and_other_things_cannot() -> None:
    class Optional(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(w, x)
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            w, x = ctx.saved_tensors
            assert w is None
            assert x is not None
            return g, None

    Optional.apply(leaf(1.0), None).backward()

    class Wrong(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x, 3)
            return x * 1

    with pytest.raises(DTypeError, match="argument 1 is a int"):
        Wrong.apply(leaf(1.0))


def test_saved_tensors_hooks_apply() -> None:
    packed: list[Any] = []

    def pack(t: Any) -> Any:
        packed.append(t)
        return t.numpy().copy()

    x = double([1.0, 2.0])
    with saved_tensors_hooks(pack, ut.tensor):
        y = Exp.apply(Cube.apply(x))
    assert len(packed) == 2
    assert not any(t.requires_grad for t in packed)
    (g,) = grad(y.sum(), x, create_graph=True)
    (h,) = grad(g.sum(), x)
    xs = np.array([1.0, 2.0])
    np.testing.assert_allclose(g.detach().numpy(), np.exp(xs**3) * 3 * xs**2)
    np.testing.assert_allclose(h.numpy(), np.exp(xs**3) * (9 * xs**4 + 6 * xs))


# Inputs as outputs, in place -----------------------------------------------------------------
class Reverse(Function):
    """Gradient reversal: returns its input as it is."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return -g


def test_returning_the_input_unchanged() -> None:
    x = leaf([1.0, 2.0])
    y = Reverse.apply(x)
    assert y is not x
    assert y.grad_fn.name() == "ReverseBackward"
    assert x.is_leaf
    y.sum().backward()
    assert x.grad.tolist() == [-1, -1]
    a = x * 2
    (Reverse.apply(a) * 3).sum().backward()
    assert x.grad.tolist() == [-7, -7]
    assert a.grad_fn.name() == "MulBackward0"
    with ut.no_grad():
        z = Reverse.apply(x)
    assert z is not x
    assert not z.requires_grad


def test_output_that_is_a_view_of_the_input_cannot_be_changed_in_place() -> None:
    class Flat(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.view(-1)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return (g * 100).view(1, 2)

    x = leaf([[1.0, 2.0]])
    a = x * 1
    for function in (Flat, Reverse):
        y = function.apply(a)
        with pytest.raises(InplaceError, match="custom Function"):
            y.mul_(2)
        with pytest.raises(InplaceError):
            y[0].mul_(2)
    Flat.apply(a).sum().backward()
    assert x.grad.tolist() == [[100, 100]]


def test_output_whose_input_changed_since_is_an_error_not_a_bypass() -> None:
    x = leaf([1.0, 2.0])
    a = x * 1
    y = Reverse.apply(a)
    a.mul_(3)  # also changes the memory of y
    with pytest.raises(GradientError, match=r"ReverseBackward.*was changed in place"):
        y.sum().backward()
    assert x.grad is None


def test_foreign_tensors_as_outputs_keep_their_own_history() -> None:
    constant = ut.tensor([5.0])
    weight = leaf([7.0])

    class Strange(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2, constant, weight

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any, k: Any) -> Any:
            return g * 2 + h + k

    x = leaf([1.0])
    _, c, w = Strange.apply(x)
    (c + w).sum().backward()
    assert x.grad.tolist() == [2]
    assert not constant.requires_grad
    assert weight.is_leaf
    assert weight.grad is None


class AddOne(Function):
    """In place."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        x.add_(1)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 10


def test_mark_dirty() -> None:
    x = leaf([1.0, 2.0])
    a = x * 3
    b = AddOne.apply(a)
    assert b is a
    assert a.grad_fn.name() == "AddOneBackward"
    assert a.tolist() == [4, 7]
    (a * a).sum().backward()
    assert x.grad.tolist() == [8 * 10 * 3, 14 * 10 * 3]


def test_mark_dirty_on_a_view_rewrites_the_base() -> None:
    x = leaf([1.0, 2.0, 3.0])
    a = x * 1
    AddOne.apply(a[1:])
    assert a.tolist() == [1, 3, 4]
    (a * ut.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [1, 20, 30]


def test_mark_dirty_on_a_leaf_or_wrongly() -> None:
    x = leaf([1.0, 2.0])
    with pytest.raises(InplaceError):
        AddOne.apply(x)

    class Lost(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x.add_(1)
            ctx.mark_dirty(x)
            return x * 2

    class Foreign(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x * 2
            ctx.mark_dirty(y)
            return y

    class Secret(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x.add_(1)
            return x * 2

    for function, message in ((Lost, "not returned"), (Secret, "mark_dirty")):
        with pytest.raises(GradientError, match=message):
            function.apply(x * 1)
    with pytest.warns(UserWarning, match="mark_dirty takes inputs"):  # as in torch
        Foreign.apply(x * 1)


def test_dirty_input_that_is_also_saved() -> None:
    class ExpInPlace(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x.exp_()
            ctx.mark_dirty(x)
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (y,) = ctx.saved_tensors
            return g * y

    x = double([0.5, 1.0])
    assert gradcheck(lambda x: ExpInPlace.apply(x * 1), (x,))
    assert gradgradcheck(lambda x: ExpInPlace.apply(x * 1), (x,))


def test_change_behind_our_back_is_noticed_if_marked() -> None:
    class Hidden(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x.detach().numpy()[:] = 9
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 0

    x = leaf([1.0, 2.0])
    a = x * 1
    z = (a * a).sum()
    Hidden.apply(a)
    with pytest.raises(VersionError):
        z.backward()


def test_buffers_may_change_in_place() -> None:
    running = ut.zeros(2)

    class Norm(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, running: Any) -> Any:
            running.mul_(0.9).add_(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2, None

    x = leaf([1.0, 2.0])
    Norm.apply(x, running).sum().backward()
    assert running.tolist() == [1, 2]
    assert x.grad.tolist() == [2, 2]


# Never silently detached ---------------------------------------------------------------------
class NumpySquare(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return ut.tensor(g.detach().numpy() * 2 * x.detach().numpy())


class OnceSquare(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        assert not ut.is_grad_enabled()
        return g * 2 * x


@pytest.mark.parametrize(
    ("function", "message"),
    [(NumpySquare, "outside of Undertow's ops"), (OnceSquare, "once_differentiable")],
)
def test_second_order_through_a_first_order_function_is_an_error(
    function: Any, message: str
) -> None:
    x = double([1.0, 0.0])
    assert gradcheck(function.apply, (x,))
    function.apply(x).sum().backward()
    assert x.grad.tolist() == [2, 0]
    (g,) = grad(function.apply(x).sum(), x, create_graph=True)
    assert g.tolist() == [2, 0]
    with pytest.raises(GradientError, match=message):
        grad(g.sum(), x)
    # Not even where another path leads to the same input.
    (g,) = grad((function.apply(x) + x**3).sum(), x, create_graph=True)
    with pytest.raises(GradientError, match=message):
        grad(g.sum(), x)
    v = double([1.0, 1.0])
    (g,) = grad(function.apply(x), x, v, create_graph=True)
    with pytest.raises(GradientError, match=message):
        grad(g.sum(), v)
    with pytest.raises(GradientError, match=message):
        gradgradcheck(function.apply, (x,))
    with pytest.raises(GradientError, match=message):
        ut.autograd.functional.jvp(function.apply, x, ut.ones_like(x))


def test_a_linear_function_of_a_constant_does_not_vary() -> None:
    class Double(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = leaf([1.0, 2.0])
    (g,) = grad(Double.apply(x).sum(), x, create_graph=True)
    assert grad(g.sum(), x)[0].tolist() == [0, 0]
    assert g.tolist() == [2, 2]
    v = leaf([1.0, 1.0])
    (g,) = grad(Reverse.apply(Double.apply(x)), x, v, create_graph=True)
    assert grad(g.sum(), v)[0].tolist() == [-2, -2]
    (g,) = grad(Reverse.apply(x).sum(), x, create_graph=True)
    assert grad(g.sum(), x)[0].tolist() == [0, 0]


def test_backward_through_captured_tensors() -> None:
    weight = double([3.0])

    class Weighted(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * weight.detach()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * weight

    x = double([2.0])
    (g,) = grad(Weighted.apply(x), x, create_graph=True)
    assert grad(g, weight)[0].item() == 1


def test_functions_inside_functions() -> None:
    class Outer(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return Cube.apply(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            with ut.enable_grad():
                inner = x.detach().requires_grad_()
                y = Cube.apply(inner)
            return grad(y, inner, g)[0]

    x = leaf([2.0])
    Outer.apply(x).backward()
    assert x.grad.tolist() == [12]


def test_function_on_another_device() -> None:
    x = leaf([1.0, 2.0], device="reference")
    s, _ = SinCos.apply(x.to(ut.float64))
    s.sum().backward()
    assert str(x.grad.device) == "reference"
    np.testing.assert_allclose(x.grad.cpu().numpy(), np.cos([1.0, 2.0]), rtol=1e-6)


def test_needs_input_grad_tells_what_this_backward_wants() -> None:
    asked: list[Any] = []

    class Times(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, n: int, y: Any, c: Any) -> Any:
            asked.append(ctx.needs_input_grad)
            return x * y * n * c

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            asked.append(ctx.needs_input_grad)
            return g, None, g, None

    x, y = leaf(1.0), leaf(1.0)
    z = Times.apply(x, 2, y, ut.tensor(1.0))
    grad(z, y, retain_graph=True)
    z.backward()
    both = (True, False, True, False)
    assert asked == [both, (False, False, True, False), both]
    assert z.grad_fn.needs_input_grad == both


def test_keyword_only_arguments_are_an_error() -> None:
    class Keyword(Function):
        @staticmethod
        def forward(x: Any, *, n: int = 2) -> Any:
            return x * n

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

    with pytest.raises(ArgumentError, match="n"):
        Keyword.apply(leaf(1.0))


# Freeing early -------------------------------------------------------------------------------
@pytest.mark.parametrize("hooked", [False, True])
@pytest.mark.parametrize("create_graph", [False, True])
def test_boxed_gradients(create_graph: bool, hooked: bool) -> None:
    class Pair(Function):
        boxed_grads_call = True

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, grads: Any) -> Any:
            assert isinstance(grads, list)
            first = weakref.ref(grads[0])
            result = grads[0] * 2
            grads[0] = None
            alive.append(first() is not None)
            result = result + grads.pop() * 3
            grads.clear()
            return result

    alive: list[bool] = []
    seen: list[Any] = []
    x = leaf([1.0, 2.0])
    a, b = Pair.apply(x)
    if hooked:
        a.grad_fn.register_hook(lambda _, outs: seen.append([g.tolist() for g in outs]))
    (a.sum() + (b * 10).sum()).backward(create_graph=create_graph)
    assert x.grad.tolist() == [32, 32]
    if not create_graph:  # else what it gets is a stand-in with a history
        assert alive == [hooked]
    assert seen == ([[[1, 1], [10, 10]]] if hooked else [])


def test_saved_tensors_that_are_cleared_when_first_asked_for() -> None:
    class Product(Function):
        clear_saved_tensors_on_access = True

        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            extra = x * y
            refs.append(weakref.ref(extra))
            ctx.save_for_backward(x, y, extra)
            assert len(ctx.saved_tensors) == len(ctx.saved_tensors) == 3
            return x * y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y, extra = ctx.saved_tensors
            assert refs[-1]() is extra
            del extra
            assert refs[-1]() is None
            with pytest.raises(FreedError, match="clear_saved_tensors_on_access"):
                _ = ctx.saved_tensors
            return g * y, g * x

    refs: list[Any] = []
    x, y = leaf(2.0), leaf(3.0)
    z = Product.apply(x, y)
    z.backward(retain_graph=True)
    assert (x.grad.item(), y.grad.item()) == (3, 2)
    with pytest.raises(FreedError, match="first asked for"):
        z.backward()


def test_arguments_by_name_stand_where_forward_has_them() -> None:
    class ScaledMul(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any, scale: float = 1.0) -> Any:
            ctx.save_for_backward(x, y)
            ctx.scale = scale
            return scale * x * y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            return g * ctx.scale * y, g * ctx.scale * x, None

    x, y = (ut.tensor(value, requires_grad=True) for value in (2.0, 3.0))
    for out in (ScaledMul.apply(x, y=y, scale=5.0), ScaledMul.apply(y=y, scale=5.0, x=x)):
        assert out.item() == 30.0
        assert [g.item() for g in ut.autograd.grad(out, (x, y))] == [15.0, 10.0]
    with pytest.raises(TypeError, match="unexpected"):
        ScaledMul.apply(x, y, size=1)


def test_backward_and_vjp_together_are_an_error() -> None:
    class Both(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

        @staticmethod
        def vjp(ctx: Any, g: Any) -> Any:
            return g

    with pytest.raises(RuntimeError, match="both a backward and a vjp"):
        Both.apply(ut.ones(1, requires_grad=True)).sum().backward()


def test_what_forward_mode_would_keep_is_accepted() -> None:
    """Functions that are written for both modes of torch work in the one that there is."""

    class Square(ut.autograd.Function):
        @staticmethod
        def forward(x: ut.Tensor) -> ut.Tensor:
            return x * x

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: ut.Tensor) -> ut.Tensor:
            (x,) = ctx.saved_tensors
            return 2 * g * x

    x = ut.tensor(3.0, requires_grad=True)
    Square.apply(x).backward()
    assert x.grad == 6
    assert not Square.generate_vmap_rule
