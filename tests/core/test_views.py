"""Views and in-place operations: what shares memory, whose history changes, what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.core.tensor import Version
from undertow.errors import (
    BoundsError,
    GradientError,
    InplaceError,
    ShapeError,
    UndertowError,
    VersionError,
)

X = np.arange(6.0).reshape(2, 3)


def leaf(values: Any = X) -> ut.Tensor:
    """A float64 leaf that requires gradients."""
    return ut.tensor(np.array(values, np.float64), requires_grad=True)


def check(t: ut.Tensor | None, expected: Any) -> None:
    """The values of a tensor."""
    assert t is not None
    np.testing.assert_allclose(t.detach()._array, np.asarray(expected, np.float64), rtol=1e-12)


# What shares memory ----------------------------------------------------------------------------
VIEWS = {
    "view": lambda x: x.view(6),
    "view same": lambda x: x.view(2, 3),
    "reshape": lambda x: x.reshape(3, 2),
    "reshape same": lambda x: x.reshape(2, 3),
    "unflatten": lambda x: x.unflatten(1, (3, 1)),
    "ravel": lambda x: x.ravel(),
    "flatten": lambda x: x.flatten(),
    "squeeze": lambda x: x.squeeze(),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "permute": lambda x: x.permute(1, 0),
    "transpose": lambda x: x.transpose(0, 1),
    "t": lambda x: x.t(),
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "H": lambda x: x.H,
    "movedim": lambda x: x.movedim(0, 1),
    "expand": lambda x: x.expand(4, 2, 3),
    "expand same": lambda x: x.expand(2, 3),
    "broadcast_to": lambda x: x.broadcast_to((4, 2, 3)),
    "narrow": lambda x: x.narrow(1, 1, 2),
    "select": lambda x: x.select(0, 1),
    "index": lambda x: x[1, ::2],
    "diagonal": lambda x: x.diagonal(),
    "unfold": lambda x: x.unfold(1, 2, 1),
    "as_strided": lambda x: x.as_strided((2,), (3,), 1),
    "split": lambda x: x.split(1)[1],
    "chunk": lambda x: x.chunk(2, 1)[1],
    "unbind": lambda x: x.unbind()[1],
    "tensor_split": lambda x: x.tensor_split(2)[0],
    "view of a view": lambda x: x.t()[1:].flatten(0, 0).unsqueeze(0),
}
COPIES = {
    "reshape": lambda x: x.t().reshape(6),
    "contiguous": lambda x: x.t().contiguous(),
    "clone": lambda x: x.clone(),
    "flip": lambda x: x.flip(0),
    "roll": lambda x: x.roll(1, 0),
    "roll by nothing": lambda x: x.roll(0, 0),
    "rot90 by nothing": lambda x: x.rot90(0),
    "repeat": lambda x: x.repeat(1, 1),
    "tile": lambda x: x.tile((1, 1)),
    "cat": lambda x: ut.cat([x]),
    "stack": lambda x: ut.stack([x]),
    "diag": lambda x: ut.diag(x),
    "tril": lambda x: x.tril(),
    "advanced index": lambda x: x[ut.tensor([0, 1])],
    "select_scatter": lambda x: x.select_scatter(x[0], 0, 0),
}
SELVES = {
    "contiguous": lambda x: x.contiguous(),
    "flatten of a vector": lambda x: x[0].flatten(),
    "atleast_1d": lambda x: ut.atleast_1d(x),
    "real": lambda x: x.real,
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_share_memory(name: str) -> None:
    """A view changes with its base, knows it, and shares its version."""
    x = ut.tensor(X)
    v = VIEWS[name](x)
    assert v._base is x
    assert np.shares_memory(v._array, x._array)
    before = v.clone()
    x.add_(1)
    check(v, before._array + 1)
    assert v._version == x._version == 1


@pytest.mark.parametrize("name", COPIES)
def test_copies_do_not(name: str) -> None:
    """A copy does not."""
    x = ut.tensor(X)
    y = COPIES[name](x)
    assert y._base is None
    assert not np.shares_memory(y._array, x._array)


@pytest.mark.parametrize("name", SELVES)
def test_selves(name: str) -> None:
    """What has nothing to do returns its argument where torch does."""
    x = ut.tensor(X)
    y = SELVES[name](x)
    assert np.shares_memory(y._array, x._array)
    assert y is x or y._base is x


def test_data_ptr_and_offset() -> None:
    """Addresses and offsets tell where a view looks."""
    x = ut.tensor(X)
    v = x[1, 1:]
    assert v.data_ptr() == x.data_ptr() + 4 * 8
    assert v.storage_offset() == 4
    assert x.t().stride() == (1, 3)


def test_as_strided_is_about_storage() -> None:
    """Strides and offset count from the start of the memory, not of the view."""
    x = ut.tensor(X)
    check(x[1].as_strided((2,), (2,), 0), [0, 2])
    check(x[1].as_strided((2,), (2,)), [3, 5])
    check(x[1].as_strided((2, 2), (1, 1)).as_strided((6,), (1,), 0), np.arange(6))
    with pytest.raises(BoundsError, match=r"\[as_strided\].*element 6 of a storage of 6"):
        x[1].as_strided((2,), (3,))


def test_view_needs_fitting_strides() -> None:
    """`view` never copies: it refuses, naming shape, strides and the fix."""
    with pytest.raises(ShapeError, match=r"\(3, 2\) with strides \(1, 3\).*reshape\(6,\).*contig"):
        ut.tensor(X).t().view(6)
    check(ut.tensor(X).t().view(3, 2, 1)[..., 0], X.T)


def test_bits() -> None:
    """`view(dtype)` looks at the same bytes; sizes scale along the last dimension."""
    x = ut.tensor([1.0, 2.0], dtype=ut.float32)
    v = x.view(ut.int32)
    assert v.tolist() == [0x3F800000, 0x40000000]
    v.zero_()
    check(x, [0, 0])
    assert x._version == v._version == 1
    assert ut.zeros(2, 4, dtype=ut.int8).view(ut.int32).shape == (2, 1)
    assert ut.zeros(2, dtype=ut.int32).view(dtype=ut.int8).shape == (8,)
    for bad in (
        ut.zeros(2, 3, dtype=ut.int8),
        ut.zeros(4, 4, dtype=ut.int8).t(),
        ut.zeros(9, dtype=ut.int8)[1:],
        ut.zeros(4, 6, dtype=ut.int8)[:, :4],
    ):
        with pytest.raises(ShapeError, match=r"\[view\].*int8.*int32.*multiples of 4"):
            bad.view(ut.int32)
    with pytest.raises(GradientError, match=r"\[view\].*no gradient"):
        leaf([1.0]).view(ut.float32)


def test_complex_parts_are_views() -> None:
    """real, imag, view_as_real and view_as_complex write through."""
    z = ut.tensor([1 + 2j, 3 + 4j])
    z.real.add_(10)
    z.imag[0] = 7
    assert z.tolist() == [11 + 7j, 13 + 4j]
    ut.view_as_real(z)[1, 0] = 0
    assert z.tolist() == [11 + 7j, 4j]
    x = ut.zeros(2, 2)
    ut.view_as_complex(x)[0] = 5 + 6j
    check(x, [[5, 6], [0, 0]])


# In-place operations and gradients ---------------------------------------------------------------
def test_in_place_on_a_tensor() -> None:
    """The history of the tensor goes on from the new value."""
    x = leaf()
    y = x * 2
    same = y.mul_(3).add_(x)
    assert same is y
    y.sum().backward()
    check(y, X * 7)
    check(x.grad, np.full((2, 3), 7))


def test_in_place_on_a_view_changes_the_base() -> None:
    """The base's history has the change, exactly where the view looks."""
    x, w = leaf(), leaf([10.0, 20.0, 30.0])
    y = x * 2
    y.select(0, 1).mul_(w)
    assert y.grad_fn is not None
    assert y.grad_fn.name() == "ViewWriteBackward0"
    check(y, [X[0] * 2, X[1] * 2 * [10, 20, 30]])
    y.sum().backward()
    check(x.grad, [[2, 2, 2], [20, 40, 60]])
    check(w.grad, X[1] * 2)


def test_in_place_on_a_view_of_a_view() -> None:
    """Steps add up, in any memory layout."""
    x = leaf()
    y = x * 2
    v = y.t()[1:].reshape(4)  # a copy: the strides allow no view
    v.mul_(100)
    y.t()[1:].select(1, 0).mul_(5)
    expected = X * 2
    expected[0, 1:] *= 5
    check(y, expected)
    y.sum().backward()
    check(x.grad, [[2, 10, 10], [2, 2, 2]])


def test_a_view_follows_its_base() -> None:
    """A view taken before its base changed has the new history."""
    x = leaf()
    y = x * 2
    v, w = y[0], y.t()[:2]
    y.mul_(x)
    (v.sum() + w.sum()).backward()
    check(x.grad, 4 * X * np.array([[2, 2, 1], [1, 1, 0]]))


def test_several_overlapping_views_in_turn() -> None:
    """Each write sees the writes before it, through whichever view they came."""
    x = leaf(np.ones(4))
    y = x * 1
    a, b, c = y[:3], y[1:], y[::2]
    a.mul_(2)
    b.mul_(3)
    c.mul_(5)
    a.add_(b)
    check(y, [10 + 6, 6 + 30, 30 + 3, 3])
    y.backward(ut.tensor([1.0, 10.0, 100.0, 1000.0], dtype=ut.float64))
    check(x.grad, [10, 6 * (1 + 10), 30 * (10 + 100), 3 * (100 + 1000)])


def test_a_base_without_gradient_gets_one() -> None:
    """A buffer that is filled with results requires gradients from then on; so do its views."""
    x = leaf([1.0, 2.0])
    buffer = ut.zeros(2, 2, dtype=ut.float64)
    early = buffer[0]
    for i in range(2):
        buffer[i] = x * (i + 1)
    assert buffer.requires_grad
    assert early.requires_grad
    (buffer.sum() + 10 * early.sum()).backward()
    check(x.grad, [13, 13])


def test_a_stale_view_is_never_taken_for_a_constant() -> None:
    """A view of a base that got its history later brings it into an in-place op, too."""
    w = leaf([2.0, 3.0])
    base = ut.ones(2, dtype=ut.float64)
    v = base[:]
    base.mul_(w)
    total = ut.zeros(2, dtype=ut.float64)
    total.add_(v)
    assert total.requires_grad
    total.sum().backward()
    check(w.grad, [1, 1])


def test_other_memory_layouts() -> None:
    """A base in column order, and steps that mean something only there."""
    x = leaf()
    y = x.t() * 2  # column-major memory of its own
    assert y._base is None
    assert not y.is_contiguous()
    v = y.t().view(6)
    v[1:4].mul_(10)
    expected = (X * 2).reshape(6)
    expected[1:4] *= 10
    check(y, expected.reshape(2, 3).T)
    y.sum().backward()
    check(x.grad, [[2, 20, 20], [20, 2, 2]])


def test_write_through_as_strided() -> None:
    """Values written by strides reach the base; the gradient takes the same way back."""
    x, w = leaf(np.ones(6)), leaf([5.0, 7.0])
    y = x * 1
    y[1:].as_strided((2,), (3,), 0).mul_(w)
    check(y, [5, 1, 1, 7, 1, 1])
    y.backward(ut.tensor(np.arange(1.0, 7)))
    check(x.grad, [5, 2, 3, 28, 5, 6])
    check(w.grad, [1, 4])


@pytest.mark.parametrize(
    "offset, expected", [(0, [2, 1, 1, 0]), (1, [1, 2, 1, 1]), (4, [0, 0, 1, 1])]
)
def test_as_strided_beyond_a_leaf_that_is_a_view(offset: int, expected: list[int]) -> None:
    """What the leaf does not look at is constant; the rest keeps its gradient."""
    memory = ut.arange(10.0)
    x = memory[2:6].requires_grad_()
    y = x.as_strided((3, 2) if offset < 4 else (2, 2), (1, 2), offset)
    assert y.requires_grad
    check(ut.autograd.grad(y.sum(), x)[0], expected)
    assert not x.detach().as_strided((2,), (1,), 0).requires_grad


def test_as_strided_beyond_its_input() -> None:
    """What lies outside the view but inside its base has its gradient, too (torch drops it)."""
    x = leaf(np.arange(6.0))
    y = x * 1
    v = y[2:4]
    v.as_strided((3,), (2,), 0).backward(ut.tensor([1.0, 10.0, 100.0], dtype=ut.float64))
    check(x.grad, [1, 0, 10, 0, 100, 0])
    (g,) = ut.autograd.grad(v.as_strided((2,), (1,)).sum(), [v])
    check(g, [1, 1])
    overlapping = ut.tensor([1.0, 2.0], dtype=ut.float64).requires_grad_()
    e = overlapping.expand(2, 2)
    (g,) = ut.autograd.grad(e.as_strided((2,), (1,)).sum(), [e])
    check(g, [[0.5, 0.5], [0.5, 0.5]])  # elements in one place share its gradient, as in torch


def test_as_strided_of_no_elements_lies_anywhere() -> None:
    x = leaf(np.arange(5.0))
    y = x.as_strided((2, 0), (7, 1), 9)
    assert y.shape == (2, 0)
    assert y.stride() == (7, 1)
    y.sum().backward()
    check(x.grad, [0, 0, 0, 0, 0])
    assert ut.zeros(0).as_strided((0,), (1,), 3).shape == (0,)
    with pytest.raises(IndexError, match="storage of 5"):
        x.as_strided((1,), (1,), 5)


def test_write_through_unfold_expand_diagonal() -> None:
    """Windows that do not overlap, a row of an expanded tensor, a diagonal."""
    x = leaf(np.ones((1, 4)))
    y = x * 1
    y.unfold(1, 2, 2)[0, :, 1].mul_(2)
    y.expand(3, 4)[0].add_(1)
    square = y.expand(4, 4) * 1
    square.diagonal(1).mul_(10)
    square.sum().backward()
    check(y, [[2, 3, 2, 3]])
    check(x.grad, [[4, 2 * 13, 13, 2 * 13]])


def test_repeated_writes_to_one_place() -> None:
    """Only the last value counts."""
    a, b = leaf([1.0]), leaf([2.0])
    y = ut.zeros(3, dtype=ut.float64)
    y.narrow(0, 1, 1).copy_(a)
    y.narrow(0, 1, 1).copy_(b * 3)
    y.sum().backward()
    assert a.grad is None or not a.grad._array.any()
    check(b.grad, [3])


def test_overwritten_values_have_no_gradient() -> None:
    """copy_, fill_, zero_ and ops without derivative cut the old value off, with zeros."""
    for change in (
        lambda y: y.copy_(ut.ones(1, dtype=ut.float64)),
        lambda y: y.fill_(2),
        lambda y: y.zero_(),
        lambda y: y.eq_(1.0),
    ):
        x = leaf([1.0, 2.0, 3.0])
        y = x * 2
        view = y[:2]
        change(view)
        assert view.requires_grad
        assert y.requires_grad
        (y.sum() + view.sum()).backward()
        check(x.grad, [0, 0, 2])
        y = x * 2
        change(y)
        x.grad = None
        y.sum().backward()
        check(x.grad, [0, 0, 0])


def test_second_order() -> None:
    """Programs with in-place code are differentiated like their functional twins."""

    def functional(x: ut.Tensor) -> ut.Tensor:
        rows = (x[0] * x[1], (x[1] ** 2).sin() * x[0])
        return ut.stack(rows).prod(0) * x[0]

    def in_place(x: ut.Tensor) -> ut.Tensor:
        y = x.clone()
        first, second = y[0], y[1]
        old = second.clone()
        second.pow_(2)
        second.sin_()
        second.mul_(x[0])
        first.mul_(old)
        out = x[0].clone()
        out.mul_(y[0] * y[1])
        return out

    x = leaf(np.random.default_rng(0).uniform(0.5, 1, (2, 3)))
    for f in (functional, in_place):
        assert ut.autograd.gradcheck(f, [x])
        assert ut.autograd.gradgradcheck(f, [x])
    (g,) = ut.autograd.grad(functional(x).sum(), [x], create_graph=True)
    (h,) = ut.autograd.grad(in_place(x).sum(), [x], create_graph=True)
    check(h, g.detach()._array)
    again = [ut.autograd.grad((k * k).sum(), [x])[0] for k in (g, h)]
    np.testing.assert_allclose(again[1]._array, again[0]._array, rtol=1e-12)


def test_ops_that_save_their_output() -> None:
    """exp_, tanh_, sqrt_ and sigmoid_ keep the value they need, whatever happens afterwards."""
    for name in ("exp_", "tanh_", "sqrt_", "sigmoid_"):
        x = leaf([0.5, 1.5])
        expected = getattr(x.clone(), name[:-1])()
        expected.mul(3).sum().backward()
        wanted, x.grad = x.grad, None
        y = x * 1
        getattr(y, name)()
        y.mul_(3)
        y.sum().backward()
        check(x.grad, wanted._array)  # type: ignore[union-attr]


def test_self_as_operand() -> None:
    """x.add_(x) doubles; x.mul_(x) changes a value that its own gradient needs, as in torch."""
    x = leaf([1.0, 2.0])
    y = x * 1
    y.add_(y)
    y.sum().backward()
    check(x.grad, [2, 2])
    y = x * 1
    y.mul_(y)
    check(y, [1, 4])
    with pytest.raises(VersionError, match=r"\[mul\].*version 0.*version 1"):
        y.sum().backward()


def test_copies_within_one_memory() -> None:
    """Source and target may overlap."""
    x = ut.tensor([1.0, 2.0, 3.0, 4.0])
    x[1:].copy_(x[:-1])
    check(x, [1, 1, 2, 3])
    x[:-1].add_(x[1:])
    check(x, [2, 3, 5, 3])
    m = ut.tensor(X[:, :2].copy())
    m.copy_(m.t())
    check(m, X[:, :2].T)


# What is refused -----------------------------------------------------------------------------
def test_leaves_and_their_views() -> None:
    """Neither a leaf nor a view of one may change with gradients on; nothing changes then."""
    x = leaf()
    for target in (x, x[0], x.t()[1:], x.view(6)):
        for change in (lambda t: t.add_(1), lambda t: t.copy_(t * 2), lambda t: t.zero_()):
            with pytest.raises(InplaceError, match=r"leaf that requires gradients.*no_grad"):
                change(target)
    check(x, X)
    assert x._version == 0
    with ut.no_grad():
        x[0].add_(1)
        x.mul_(2)
    check(x, (X + [[1], [0]]) * 2)
    assert x.is_leaf
    assert x._version == 2


def test_expanded_and_overlapping_targets() -> None:
    """Elements that share memory cannot be changed one by one."""
    x = ut.ones(3)
    for target in (x.expand(2, 3), x.unfold(0, 2, 1), x.as_strided((2, 2), (1, 1))):
        for change in (lambda t: t.add_(1), lambda t: t.copy_(ut.zeros(1)), lambda t: t.exp_()):
            with pytest.raises(InplaceError, match=r"share one memory location.*clone"):
                change(target)
    check(x, [1, 1, 1])
    x.unfold(0, 1, 2).add_(1)  # these do not
    check(x, [2, 1, 2])


def test_read_only_memory() -> None:
    """Read-only NumPy memory stays as it is."""
    a = np.arange(3.0)
    a.flags.writeable = False
    x = ut.core.tensor.wrap(a)
    with pytest.raises(InplaceError, match="read-only"):
        x.add_(1)
    with pytest.raises(InplaceError, match="read-only"):
        x[1:].zero_()


def test_results_that_do_not_fit() -> None:
    """A result of another shape or a higher kind of dtype leaves the target alone."""
    x = ut.ones(3)
    with pytest.raises(ShapeError, match=r"\(2, 3\).*\(3,\)"):
        x.add_(ut.ones(2, 3))
    n = ut.tensor([1, 2])
    with pytest.raises(UndertowError, match=r"float32.*int64"):
        n.add_(0.5)
    with pytest.raises(ShapeError):
        x.copy_(ut.ones(2))
    check(x, [1, 1, 1])
    assert n.tolist() == [1, 2]
    assert x._version == n._version == 0


# Saved values -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "change",
    [
        lambda y: y.add_(1),
        lambda y: y[0].add_(1),
        lambda y: y.t().select(0, 0).zero_(),
        lambda y: y.detach().add_(1),
        lambda y: y.detach()[1].add_(1),
        lambda y: y.view(6).detach().view(2, 3).mul_(2),
        lambda y: y.t_(),
    ],
)
def test_changed_saved_values_are_noticed(change: Any) -> None:
    """Directly, through views, and through detach()."""
    x = leaf()
    y = x * 2
    z = y * y
    change(y)
    with pytest.raises(VersionError, match=r"\[mul\].*saved at version 0.*now at version 1.*clone"):
        z.sum().backward()


def test_saved_views_are_noticed() -> None:
    """A saved view changes with its base, whoever changes it."""
    for change in (lambda b: b.mul_(2), lambda b: b[0].mul_(2), lambda b: b[1].mul_(2)):
        x = leaf()
        base = x * 1
        z = base[0] * base[0]
        change(base)
        with pytest.raises(VersionError, match=r"\[mul\]"):
            z.sum().backward()


def test_unsaved_values_may_change() -> None:
    """add saves nothing, and neither does mul by a number."""
    x = leaf()
    y = x * 2
    z = (y + 1) * 3
    y.zero_()
    z.sum().backward()
    check(x.grad, np.full((2, 3), 6))


def test_saved_copy_of_what_is_overwritten() -> None:
    """The op that overwrites its own operand keeps a copy of it, also through a view."""
    x, w = leaf(), leaf()
    y = x * 1
    y.mul_(w)
    y[0].pow_(2)
    y.sum().backward()
    scale = np.where([[True], [False]], 2 * X * X, 1)
    check(x.grad, scale * X)
    check(w.grad, scale * X)


def test_changes_through_data_are_not_noticed() -> None:
    """`.data` shares memory and not the version, as in torch; `detach` shares both."""
    x = leaf()
    z = x * x
    x.data.zero_()
    check(x, np.zeros((2, 3)))
    assert x._version == 0
    z.sum().backward()
    check(x.grad, np.zeros((2, 3)))
    x = leaf()
    z = x * x
    x.detach().zero_()
    with pytest.raises(VersionError, match=r"\[mul\]"):
        z.sum().backward()


def test_parts_written_through_data_by_a_function() -> None:
    """A buffer that is filled step by step while products of its parts are recorded."""

    class Assign(ut.autograd.Function):
        @staticmethod
        def forward(ctx: Any, buffer: ut.Tensor, value: ut.Tensor, i: int) -> ut.Tensor:
            ctx.i = i
            buffer.data[i] = value
            return buffer

        @staticmethod
        def backward(ctx: Any, g: ut.Tensor) -> Any:
            rest = g.clone()
            rest[ctx.i] = 0
            return rest, g[ctx.i], None

    w = ut.tensor(2.0, requires_grad=True)
    buffer, total = ut.zeros(3), ut.tensor(1.0)
    for i in range(3):
        buffer = Assign.apply(buffer, w * total, i)
        total = (buffer[: i + 1] * w).sum()
    total.backward()  # w² + 2w⁴ + w⁶
    assert total.item() == 4 + 32 + 64
    assert w.grad.item() == 4 + 64 + 192


# Modes, flags and hooks -------------------------------------------------------------------------
def test_changes_under_no_grad() -> None:
    """The value changes, the history does not."""
    x = leaf()
    y = x * 2
    v = y[0]
    with ut.no_grad():
        v.mul_(5)
        y.add_(1)
    assert v.requires_grad
    (y.sum() + v.sum()).backward()
    check(x.grad, [[4, 4, 4], [2, 2, 2]])


def test_views_made_under_no_grad() -> None:
    """They are constants until the base changes with gradients; changing it is refused."""
    x = leaf()
    y = x * 2
    with ut.no_grad():
        v = y[0]
    assert v._base is y
    assert not v.requires_grad
    assert not (v * 2).requires_grad
    y.mul_(2)
    with pytest.raises(GradientError, match="made under no_grad"):  # as in torch: it is neither
        v.sum().backward()
    for change in (lambda: v.add_(1), lambda: v.zero_(), lambda: v[1:].mul_(x[0, 1:])):
        with pytest.raises(InplaceError, match="made under no_grad"):
            change()
    check(y, X * 4)
    with ut.no_grad():
        v.zero_()
        assert not (v * 2).requires_grad
    check(y, [np.zeros(3), X[1] * 4])
    plain = ut.zeros(2, dtype=ut.float64)
    with ut.no_grad():
        w = plain[:1]
    w.add_(1)  # no gradient anywhere
    with pytest.raises(InplaceError, match="made under no_grad"):
        w.add_(x[0, 1])
    check(plain, [1, 0])


def test_a_base_that_is_detached_leaves_its_views_their_history() -> None:
    """Unless it changed before, and the view has not been used since: that is an error."""
    x = leaf()
    y = x * 2
    used, unused, early = y[0], y[0, 1:], y[1]
    used.mul_(3)
    assert used.requires_grad
    y.detach_()
    assert not y.requires_grad
    assert y.is_leaf
    used.sum().backward()
    check(x.grad, [[6, 6, 6], [0, 0, 0]])
    for view in (unused, early):
        with pytest.raises(GradientError, match="lost its history"):
            view.sum().backward()
    z = x * 2
    view = z[0]
    z.detach_()
    view.sum().backward()
    check(x.grad, [[8, 8, 8], [0, 0, 0]])


def test_an_interrupt_leaves_a_view_to_be_brought_up_to_date(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next use of it does that; it never keeps the history from before the change."""

    def interrupt(*_: Any) -> Any:
        raise KeyboardInterrupt

    x = leaf()
    y = x * 2
    view = y[0]
    y.mul_(3)
    with monkeypatch.context() as patch:
        patch.setattr("undertow.core.inplace.replay", interrupt)
        with pytest.raises(KeyboardInterrupt):
            view.sum()
    view.sum().backward()
    check(x.grad, [[6, 6, 6], [0, 0, 0]])


def test_two_threads_share_one_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """When both make the first view of a tensor at the same time."""

    class Slow(Version):
        __slots__ = ()

        def __init__(self, overwritten: bool = False) -> None:
            time.sleep(0.05)
            super().__init__(overwritten)

    monkeypatch.setattr("undertow.core.tensor.Version", Slow)
    y = ut.ones(2)
    views: list[ut.Tensor] = []
    threads = [threading.Thread(target=lambda: views.append(y[:1])) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    y.zero_()
    assert [view._version for view in views] == [1, 1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_views_after_a_fork_during_a_view() -> None:
    """A lock that another thread held at that moment is free in the child."""
    script = textwrap.dedent("""
        import os, threading
        import undertow as ut
        from undertow.core.tensor import _sharing
        held, done = threading.Event(), threading.Event()
        def hold():
            with _sharing:
                held.set()
                done.wait()
        threading.Thread(target=hold).start()
        held.wait()
        child = os.fork()
        if child == 0:
            threading.Timer(100, os._exit, (1,)).start()
            os._exit(0 if ut.ones(2)[:1].tolist() == [1.0] else 1)
        status = os.waitpid(child, 0)[1]
        done.set()
        print(status)
    """)
    run = [sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(run, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "0", done.stderr


def test_detach_shares_memory_and_version() -> None:
    """But not history."""
    x = leaf()
    y = x * 2
    d = y.detach()
    assert not d.requires_grad
    assert d._base is None
    d.add_(1)
    check(y, X * 2 + 1)
    assert y._version == d._version == 1
    y.sum().backward()
    check(x.grad, np.full((2, 3), 2))
    d.mul_(leaf())
    assert d.requires_grad
    assert y.grad_fn.name() == "MulBackward0"  # type: ignore[union-attr]


def test_detach_in_place() -> None:
    """detach_ forgets the history; a view refuses; what others saved of it keeps its own."""
    x = leaf()
    y = x * 2
    z = (y * y).sum()
    with pytest.raises(InplaceError, match="detach_"):
        y[0].detach_()
    y.detach_()
    assert y.is_leaf
    assert not y.requires_grad
    (g,) = ut.autograd.grad(z, [x], create_graph=True)
    check(g, 8 * X)
    (h,) = ut.autograd.grad(g.sum(), [x])
    check(h, np.full((2, 3), 8))


def test_requires_grad_after_views() -> None:
    """A view follows its base when that becomes a leaf that requires gradients."""
    x = ut.tensor(X)
    v = x[0]
    x.requires_grad_()
    assert v.requires_grad
    v.sum().backward()
    check(x.grad, [[1, 1, 1], [0, 0, 0]])
    with pytest.raises(InplaceError, match="view of a leaf"):
        v.add_(1)


def test_a_view_as_leaf() -> None:
    """A view of a constant may be a leaf itself, until its base gets a history."""
    base = ut.ones(2, 2, dtype=ut.float64)
    v = base[0]
    v.requires_grad_()
    assert v.is_leaf
    assert not base.requires_grad
    (v * 3).sum().backward()
    check(v.grad, [3, 3])
    w = leaf([2.0, 2.0])
    base.mul_(w)
    assert not v.is_leaf
    v.sum().backward()
    check(w.grad, [1, 1])


def test_hooks_belong_to_the_value() -> None:
    """A hook registered before an in-place change sees the gradient of the old value."""
    seen = []
    x = leaf([1.0, 1.0])
    y = x * 2
    y.register_hook(lambda g: seen.append(("old", g.tolist())))
    y.mul_(3)
    y.register_hook(lambda g: seen.append(("new", g.tolist())))
    y.sum().backward()
    assert seen == [("new", [1, 1]), ("old", [3, 3])]


def test_retained_gradients_belong_to_the_tensor() -> None:
    """retain_grad is about the tensor: `.grad` is that of its latest value."""
    x = leaf([1.0, 1.0])
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    assert y.retains_grad
    y.sum().backward()
    check(y.grad, [1, 1])
    y = x * 2
    y.retain_grad()
    y[0].mul_(5)
    y.sum().backward()
    check(y.grad, [1, 1])
    y = x * 2
    v = y[:1]
    v.retain_grad()
    y.mul_(3)
    (v * 7).sum().backward()
    check(v.grad, [7])
    y = x * 2
    v = y[:1]
    v.retain_grad()
    v.mul_(3)
    y.sum().backward()
    assert v.grad is None  # the new v took no part


# Changing one's own shape -----------------------------------------------------------------------
def test_turning() -> None:
    """t_, transpose_, squeeze_ … are views of themselves, with history."""
    x = leaf()
    y = x * 2
    assert y.t_() is y
    assert y.shape == (3, 2)
    assert y.unsqueeze_(0).shape == (1, 3, 2)
    assert y.squeeze_().shape == (3, 2)
    assert y.transpose_(0, 1).swapaxes_(0, 1).swapdims_(0, 1).shape == (2, 3)
    y.t_()
    y.backward(ut.tensor(np.arange(6.0).reshape(3, 2)))
    check(x.grad, 2 * np.arange(6.0).reshape(3, 2).T)
    assert y._base is None


def test_views_survive_a_turn_of_their_base() -> None:
    """Views made before and after, written before and after."""
    x = leaf()
    y = x * 2
    v = y[0]
    y.t_()
    w = y[:, 0]
    v.mul_(5)
    y.unsqueeze_(1)
    w.mul_(7)
    y[1].mul_(11)
    expected = X * 2
    expected[0] *= 35
    expected[:, 1] *= 11
    check(y, expected.T[:, None])
    check(v, expected[0])
    check(w, expected[0])
    (y.sum() + v.sum() + 3 * w.sum()).backward()
    check(x.grad, 2 * np.array([[35 * 5, 35 * 5 * 11, 35 * 5], [1, 11, 1]]))


def test_turning_a_view() -> None:
    """A view turns alone; writing to it still reaches the base."""
    x = leaf()
    y = x * 2
    v = y[:, 1:]
    v.t_()
    v[0].mul_(10)
    check(y, X * 2 * [1, 10, 1])
    assert y.shape == (2, 3)
    y.sum().backward()
    check(x.grad, [[2, 20, 2], [2, 20, 2]])


def test_turning_leaves() -> None:
    """Refused with gradients on; under no_grad the leaf and its gradient have the new shape."""
    x = leaf()
    with pytest.raises(InplaceError, match=r"\[t_\].*leaf"):
        x.t_()
    with ut.no_grad():
        x.t_()
    assert x.is_leaf
    (x * x).sum().backward()
    check(x.grad, 2 * X.T)


def test_turning_under_no_grad_is_recorded() -> None:
    """A square tensor would otherwise get a gradient that is silently transposed."""
    x = leaf(np.arange(4.0).reshape(2, 2))
    y = x * 1
    with ut.no_grad():
        y.t_()
    y.backward(ut.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=ut.float64))
    check(x.grad, [[1, 3], [2, 4]])


def test_as_strided_in_place() -> None:
    """Older views cannot be followed any more, which is an error when a gradient asks for it."""
    x = leaf()
    y = x * 2
    v = y[0]
    y.as_strided_((2,), (3,), 1)
    check(y, [2, 8])
    y.sum().backward()
    check(x.grad, [[0, 2, 0], [0, 2, 0]])
    with pytest.raises(InplaceError, match=r"\[as_strided_\].*before its base changed"):
        (v * 1).sum().backward()


# NumPy ------------------------------------------------------------------------------------------
def test_memory_shared_with_numpy() -> None:
    """Both sides see each other's writes."""
    a = np.arange(4.0)
    x = ut.from_numpy(a)
    x[1:3].mul_(10)
    np.testing.assert_array_equal(a, [0, 10, 20, 3])
    a[0] = 7
    check(x, [7, 10, 20, 3])
    b = x[::2].numpy()
    b += 1
    check(x, [8, 10, 21, 3])
    w = leaf([1.0, 2.0, 3.0, 4.0])
    x.mul_(w)
    np.testing.assert_array_equal(a, [8, 20, 63, 12])
    x.sum().backward()
    check(w.grad, [8, 10, 21, 3])


def test_strided_numpy_memory() -> None:
    """A base with gaps, whose views are written with gradients."""
    a = np.arange(12.0).reshape(3, 4)
    x = ut.from_numpy(a[:, ::2])
    w = leaf([2.0, 3.0])
    x[1].mul_(w)
    x.t()[0].mul_(w[0])
    np.testing.assert_array_equal(a[:, ::2], [[0, 2], [16, 18], [16, 10]])
    np.testing.assert_array_equal(a[:, 1::2], [[1, 3], [5, 7], [9, 11]])
    x.sum().backward()
    check(w.grad, [0 + 2 * 2 * 4 + 8, 6])


def test_many_small_writes() -> None:
    """A long chain of writes to one buffer, forward and back."""
    x = leaf(np.ones(200))
    buffer = ut.zeros(200, dtype=ut.float64)
    for i in range(200):
        buffer[i] = x[i] * i if i == 0 else buffer[i - 1] * 0.5 + x[i]
    buffer[-1].backward()
    check(x.grad, [0.0] + [0.5**k for k in range(198, -1, -1)])


@pytest.mark.parametrize(
    "change",
    [
        lambda y: y.add_(1),
        lambda y: y[0].add_(1),
        lambda y: y.view(2, 1).mul_(2),
        lambda y: y.detach().add_(1),
        lambda y: y.detach_().add_(1),
        lambda y: ut.no_grad()(lambda: y.zero_())(),
        lambda y: y.t_() if y.ndim == 2 else y.fill_(0.0),
    ],
)
def test_an_output_saved_by_its_own_node_is_watched(change) -> None:
    """tanh, exp and their like save their output, which the caller also holds."""
    for name in ("tanh", "exp", "sigmoid", "sqrt"):
        x = ut.tensor([0.5, 0.25], requires_grad=True)
        y = getattr(x, name)()
        z = y + 1
        change(y)
        with pytest.raises(ut.errors.VersionError, match=name):
            z.sum().backward()


def test_an_output_that_got_other_memory_has_the_gradient_of_the_old() -> None:
    """What the node saved is the memory that the output had, as in torch."""
    for name in ("tanh", "exp", "sigmoid", "sqrt"):
        x = ut.tensor([0.5, 0.25], requires_grad=True)
        y = getattr(x, name)()
        (expected,) = ut.autograd.grad(y.sum(), x, retain_graph=True)
        z = y + 1
        y.data = ut.zeros(2)
        z.sum().backward()
        check(x.grad, expected)


@pytest.mark.parametrize("cut", ["unbind", "split", "chunk"])
def test_pieces_share_one_node_and_follow_their_base(cut: str) -> None:
    """One node with an output for each piece; after a change of the base each is its own view."""
    x = ut.arange(6.0).reshape(2, 3).requires_grad_() * 1.0
    pieces = {"unbind": x.unbind, "split": lambda: x.split(1), "chunk": lambda: x.chunk(2)}[cut]()
    assert [p.output_nr for p in pieces] == [0, 1]
    assert len({id(p.grad_fn) for p in pieces}) == 1
    assert all(p._base is x for p in pieces)
    pieces[1].mul_(3.0)
    assert x[1].tolist() == [9.0, 12.0, 15.0]
    (grad,) = ut.autograd.grad(x.sum() + pieces[0].sum(), [x])
    assert grad.tolist() == [[2.0] * 3, [1.0] * 3]


def test_views_remember_their_forward_line_in_anomaly_mode() -> None:
    """The short way of views leaves nothing out; see Note [short views]."""
    x = ut.ones(2, 3, requires_grad=True)
    with ut.autograd.detect_anomaly():
        for view in (x.t(), x[0], x.reshape(6), x.unbind()[1], x.sum(0)):
            assert view.grad_fn is not None
            assert any("test_views" in line for line in view.grad_fn.site)


def test_a_number_inside_the_memory_that_changes_is_read_once() -> None:
    """`t.add_(o)` with `o` an element of `t`: every element gets the old number (torch races)."""
    for recorded in (False, True):
        x = ut.tensor([[1.0, 5.0], [10.0, 7.0]], requires_grad=recorded) * 1.0
        t, o = x[:, 0], x[0, 0]
        t.add_(o)
        assert x.tolist() == [[2.0, 5.0], [11.0, 7.0]]
        t.mul_(x[1, 0])
        assert x.tolist() == [[22.0, 5.0], [121.0, 7.0]]
