"""What code that knows torch's autograd from inside asks for: saved values, callbacks, names."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.autograd import Function, Variable


def test_saved_values_by_name() -> None:
    """`_saved_self`, `_saved_other`, `_saved_result` and parameters, until they are freed."""
    a, b = ut.rand(3, requires_grad=True), ut.rand(3, requires_grad=True)
    y = a * b
    assert y.grad_fn._saved_self is a
    assert y.grad_fn._saved_other is b
    e = a.exp()
    np.testing.assert_array_equal(e.grad_fn._saved_result.detach().numpy(), e.detach().numpy())
    assert not hasattr(y.grad_fn, "_saved_result")
    assert not hasattr(y.grad_fn, "_saved_nothing")
    assert not hasattr(y.grad_fn, "nothing")
    y.sum().backward()
    with pytest.raises(RuntimeError, match="were freed by an earlier backward"):
        _ = y.grad_fn._saved_self


def test_what_arrives_at_a_node() -> None:
    """The shapes and dtypes of a node's outputs."""
    (one,) = (ut.rand(2, 3, requires_grad=True) * 2).grad_fn._input_metadata
    assert (one.shape, one.dtype) == ((2, 3), ut.float32)
    two = ut.linalg.eigh(ut.rand(3, 3, requires_grad=True)).eigenvalues.grad_fn._input_metadata
    assert [m.shape for m in two] == [(3,), (3, 3)]


def test_callbacks_at_the_end_of_a_pass() -> None:
    """They run once, after the leaves have their gradients, and may queue others."""
    queue = Variable._execution_engine.queue_callback
    x = ut.ones(2, requires_grad=True)
    seen: list[Any] = []

    def first() -> None:
        seen.append(x.grad is not None)
        queue(lambda: seen.append("second"))

    y = x * 2
    y.register_hook(lambda g: queue(first))
    y.sum().backward()
    assert seen == [True, "second"]
    with pytest.raises(RuntimeError, match="no backward pass is running"):
        queue(first)


def test_a_tensor_returned_twice_is_one() -> None:
    """Outputs of a Function that are one tensor stay one, and both gradients count."""

    class Twice(Function):
        @staticmethod
        def forward(ctx: Any, x: ut.Tensor) -> Any:
            y = x * 2
            return y, y

        @staticmethod
        def backward(ctx: Any, one: ut.Tensor, two: ut.Tensor) -> ut.Tensor:
            return 2 * one + 2 * two

    x = ut.ones(2, dtype=ut.float64, requires_grad=True)
    a, b = Twice.apply(x)
    assert a is b
    (g,) = ut.autograd.grad((a + 3 * b).sum(), x)
    assert g.tolist() == [8.0, 8.0]


def test_old_ways_of_functions() -> None:
    """An object of one, saved_variables and marks of tensors that are no inputs warn."""

    class Id(Function):
        @staticmethod
        def forward(ctx: Any, x: ut.Tensor) -> ut.Tensor:
            ctx.save_for_backward(x)
            ctx.mark_dirty(y := x + 0)
            return y

        @staticmethod
        def backward(ctx: Any, g: ut.Tensor) -> ut.Tensor:
            assert ctx.saved_variables[0].shape == (2,)
            return g

    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        made = Id()
    assert isinstance(made, Id)
    with pytest.raises(RuntimeError, match=r"call Id\.apply"):
        made(ut.ones(2))
    x = ut.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="mark_dirty takes inputs"):
        y = Id.apply(x)
    assert y.grad_fn.__class__ is Id._backward_cls
    with pytest.warns(DeprecationWarning, match="saved_variables"):
        y.sum().backward()
    assert hasattr(Id, "vmap")
    with pytest.raises(NotImplementedError, match="needs no rule"):
        Id.vmap(None, None)


def test_gradcheck_is_a_function_and_a_module() -> None:
    """Names are imported from it, and it is called, whatever was imported before."""
    from undertow.autograd.gradcheck import get_analytical_jacobian, get_numerical_jacobian

    x = ut.rand(2, 2, dtype=ut.float64, requires_grad=True)
    assert ut.autograd.gradcheck(lambda x: x * x, x)
    import sys

    assert sys.modules["undertow.autograd.gradcheck"](lambda x: x * x, x)  # type: ignore[operator]
    with pytest.warns(FutureWarning, match="private API"):
        (measured,) = get_numerical_jacobian(lambda given: 3 * given[0], (x,), eps=1e-6)
    with pytest.warns(FutureWarning, match="private API"):
        (computed,), *well = get_analytical_jacobian((x,), 3 * x)
    np.testing.assert_allclose(measured.numpy(), 3 * np.eye(4), atol=1e-8)
    np.testing.assert_allclose(computed.numpy(), 3 * np.eye(4))
    assert well == [True, True, True]
    with pytest.raises(ValueError, match=r"grad_out is 1.0, got 2.0"):
        get_numerical_jacobian(lambda given: given[0], (x,), grad_out=2.0)


def test_zeros_for_an_edge() -> None:
    """`materialize_grads` cannot make zeros for an edge that is not reached."""
    x, y = ut.ones(2, requires_grad=True), ut.ones(2, requires_grad=True)
    edge = ut.autograd.graph.get_gradient_edge(y)
    with pytest.raises(RuntimeError, match="input 1 is a GradientEdge"):
        ut.autograd.grad((x * 2).sum(), (x, edge), allow_unused=True, materialize_grads=True)


def test_small_differences() -> None:
    """Wrong numbers of gradients, deleted attributes, decorated classes, versions of inference."""
    x = ut.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match="has 1 outputs, got 2 gradients"):
        (x * 2).grad_fn(x, x)
    for name in ("data", "requires_grad"):
        with pytest.raises(RuntimeError, match="cannot be deleted"):
            delattr(x, name)
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):

        @ut.no_grad()
        class Made:
            def __init__(self) -> None:
                self.recording = ut.is_grad_enabled()

    assert not Made().recording
    with ut.inference_mode():
        inside = ut.ones(2)
    ut.autograd.graph.increment_version(inside)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ut.utils.checkpoint.set_checkpoint_debug_enabled(True):
            assert ut.utils.checkpoint.checkpoint(lambda x: x * 2, x).tolist() == [2.0, 2.0]


def test_sparse_tensors_by_size_and_by_promise() -> None:
    """One argument is the size; `_coalesced_` takes the caller's word."""
    empty = ut.sparse_coo_tensor((2, 3), dtype=ut.float64)
    assert (empty.shape, empty._nnz(), empty.dtype) == ((2, 3), 0, ut.float64)
    twice = ut.sparse_coo_tensor([[0, 1]], [1.0, 2.0])
    assert not twice.is_coalesced()
    assert twice._coalesced_(True).is_coalesced()
    assert twice.values().tolist() == [1.0, 2.0]


def test_sparse_indices_of_floats() -> None:
    """Indices that are whole floating numbers are taken, as in torch, and others refused."""
    found = ut.sparse_coo_tensor(ut.zeros(1, 1), ut.ones(1))
    assert found.to_dense().tolist() == [1.0]
    with pytest.raises(ValueError, match="are integers"):
        ut.sparse_coo_tensor(ut.full((1, 1), 0.5), ut.ones(1))
