"""What code that knows torch's autograd from inside asks for: saved values, callbacks, names."""

from __future__ import annotations

import warnings
from importlib import import_module
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
    names = [n for n in dir(y.grad_fn) if "saved_" in n]
    assert {"_saved_self", "_saved_other", "_raw_saved_self", "_saved_a"} <= {*names}
    assert all(hasattr(y.grad_fn, n) for n in names)  # as who draws a graph looks them through
    assert "_saved_dim" not in names
    y.sum().backward()
    with pytest.raises(RuntimeError, match="were freed by an earlier backward"):
        _ = y.grad_fn._saved_self


def test_hooks_of_one_saved_tensor() -> None:
    """`_raw_saved_self` takes hooks of its own, once, of the right kind."""
    a = ut.rand(3, requires_grad=True)
    y = a * a
    saved = y.grad_fn._raw_saved_self
    assert isinstance(saved, ut.autograd.SavedTensor)
    assert saved.data is a
    assert saved.unpack_hook is None
    with pytest.raises(TypeError, match="callable"):
        saved.register_hooks(1, 1)
    saved.register_hooks(lambda t: (t * 2).numpy(), ut.from_numpy)
    with pytest.raises(RuntimeError, match="hooks already"):
        saved.register_hooks(lambda t: t, lambda t: t)
    np.testing.assert_array_equal(saved.unpack().detach().numpy(), 2 * a.detach().numpy())
    y.sum().backward()
    assert a.grad is not None
    np.testing.assert_allclose(a.grad.numpy(), 3 * a.detach().numpy())  # other + 2 self
    with pytest.raises(RuntimeError, match="were freed"):
        _ = y.grad_fn._raw_saved_self
    with pytest.raises(RuntimeError, match="made by nodes"):
        ut.autograd.SavedTensor()


def test_hooks_of_a_saved_output_and_of_a_group() -> None:
    """An output, and one of several inputs, come back attached to the graph."""
    a = ut.rand(3, requires_grad=True)
    y = a.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: t)
    (first,) = ut.autograd.grad(y.sum(), a, create_graph=True)
    (second,) = ut.autograd.grad(first.sum(), a)
    np.testing.assert_allclose(second.numpy(), y.detach().numpy())
    bad = a.exp()
    with pytest.raises(RuntimeError, match="in place"):
        bad.grad_fn._raw_saved_result.register_hooks(lambda t: t.add_(1), lambda t: t)
    bad = a.exp()
    bad.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: 1)
    with pytest.raises(TypeError, match="it must return the Tensor"):
        bad.sum().backward()


def test_hooks_of_what_a_function_saved() -> None:
    """`_raw_saved_tensors`, None among them, and `apply` of the node."""

    class Cube(Function):
        @staticmethod
        def forward(ctx: Any, x: ut.Tensor) -> ut.Tensor:
            ctx.save_for_backward(x, None)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: ut.Tensor) -> Any:
            return g * 3 * ctx.saved_tensors[0] ** 2

    x = ut.tensor([1.0, 2.0], requires_grad=True)
    y = Cube.apply(x)
    assert y.grad_fn.apply(ut.ones(2)).tolist() == [3.0, 12.0]
    saved = y.grad_fn._raw_saved_tensors
    with pytest.raises(RuntimeError, match="None"):
        saved[1].register_hooks(lambda t: t, lambda t: t)
    saved[0].register_hooks(lambda t: t.tolist(), ut.tensor)
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3.0, 12.0]
    with pytest.raises(RuntimeError, match="were freed"):
        _ = y.grad_fn._raw_saved_tensors


def test_a_constant_output_may_get_none() -> None:
    """`_materialize_non_diff_grads = False`: no zeros for outputs without gradients."""
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx: Any, x: ut.Tensor) -> Any:
            a, b = x.clone(), x.clone()
            ctx.mark_non_differentiable(b)
            ctx._materialize_non_diff_grads = False
            return a, b

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any) -> Any:
            seen.append(b)
            return a

    Two.apply(ut.tensor(1.0, requires_grad=True))[0].backward()
    assert seen == [None]


def test_a_view_that_forward_made_is_not_dirty() -> None:
    """`mark_dirty` is for inputs; a view of something else would keep a wrong history."""

    class Wrong(Function):
        @staticmethod
        def forward(ctx: Any, x: ut.Tensor) -> ut.Tensor:
            out = x.clone().view_as(x)
            ctx.mark_dirty(out)
            return out

    with pytest.raises(RuntimeError, match="takes inputs"):
        Wrong.apply(ut.ones(1, requires_grad=True).clone())


def test_questions_about_the_pass_that_runs() -> None:
    """Its number, whether it keeps the graph, and whether it comes to a node."""
    c = import_module("undertow._C")
    assert c._current_graph_task_id() == -1
    a, b = ut.ones(2, requires_grad=True), ut.ones(2, requires_grad=True)
    y = a * b
    seen: list[Any] = []

    def look(g: Any) -> None:
        seen.append(c._current_graph_task_id())
        keeps = c._autograd._get_current_graph_task_keep_graph()
        node_a, node_b = (n for n, _ in y.grad_fn.next_functions)
        reached = [c._will_engine_execute_node(n) for n in (y.grad_fn, node_a, node_b)]
        seen.append((keeps, reached))

    y.register_hook(look)
    ut.autograd.backward(y.sum(), inputs=[a], retain_graph=True)
    ut.autograd.backward(y.sum())
    assert seen[0] != seen[2]
    assert (seen[1], seen[3]) == ((True, [True, True, False]), (False, [True, True, True]))
    with pytest.raises(RuntimeError, match="no backward pass"):
        c._will_engine_execute_node(y.grad_fn)


def test_nodes_that_give_no_gradient() -> None:
    """`UndefinedGrad` sends none, `DelayedError` raises."""
    functions = import_module("undertow._C")._functions
    x = ut.ones(2, requires_grad=True)
    functions.UndefinedGrad()(x * 2).sum().backward()
    assert x.grad is None
    with pytest.raises(RuntimeError, match="boom"):
        functions.DelayedError("boom", 1)(x * 2).sum().backward()
    assert isinstance((x * 2).grad_fn.next_functions[0][0], functions.AccumulateGrad)


def test_versions_that_are_kept() -> None:
    """Changes in a block of `_unsafe_preserve_version_counter` are not counted."""
    x = ut.ones(2).add_(1)
    with ut.autograd._unsafe_preserve_version_counter((x,)):
        x.mul_(2)
    assert x._version == 1
    autograd = import_module("undertow._C")._autograd
    autograd._unsafe_set_version_counter((x,), (0,))
    assert x._version == 0
    with pytest.raises(RuntimeError, match="Cannot set"):
        autograd._unsafe_set_version_counter((x,), (-1,))


def test_parts_that_nobody_follows() -> None:
    """Parts of `unsafe_split` may be changed by one another, as in torch."""
    for parts in (
        lambda t: t.unsafe_split(1),
        lambda t: t.unsafe_split_with_sizes((1, 1)),
        lambda t: ut.unsafe_chunk(t, 2),
    ):
        a = ut.tensor([[2.0], [5.0]], requires_grad=True)
        first, second = parts(a * 1)
        first.mul_(second)
        first.sum().backward()
        assert a.grad is not None
        assert a.grad.tolist() == [[5.0], [2.0]]


def test_the_dtype_of_a_gradient() -> None:
    """`grad_dtype`: the leaf's own, another, or that of what arrives."""

    class Double(Function):
        @staticmethod
        def forward(ctx: Any, x: ut.Tensor) -> ut.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: ut.Tensor) -> Any:
            return g.to(ut.float64)

    for dtype, expected in ((ut.float32, ut.float32), (ut.float16, ut.float16), (None, ut.float64)):
        x = ut.tensor([1.0, 2.0], requires_grad=True)
        assert x.grad_dtype is ut.float32
        x.grad_dtype = dtype
        Double.apply(x).sum().backward()
        assert x.grad is not None
        assert (x.grad.dtype, x.grad.tolist()) == (expected, [1.0, 1.0])
        Double.apply(x).sum().backward()
        assert (x.grad.dtype, x.grad.tolist()) == (expected, [2.0, 2.0])
        (x * 2 + x).sum().backward()  # two edges, of the leaf's dtype
        assert (x.grad.dtype, x.grad.tolist()) == (expected, [5.0, 5.0])
    with pytest.raises(RuntimeError, match="leaf"):
        _ = (x * 2).grad_dtype
    with pytest.raises(RuntimeError, match="leaves"):
        (x * 2).grad_dtype = None
    with pytest.raises(RuntimeError, match="there is a gradient"):
        x.grad_dtype = ut.float16
    x.grad = None
    x.grad_dtype = ut.float16
    with pytest.raises(RuntimeError, match=r"expects shape \(2,\) and undertow.float16"):
        x.grad = ut.ones(2)
    later = ut.ones(2)
    later.grad_dtype = ut.float64
    (later.requires_grad_() * 2).sum().backward()
    assert later.grad is not None
    assert later.grad.dtype is ut.float64


def test_copies_before_a_change_are_made_once() -> None:
    """`allow_mutation_on_saved_tensors` tells what it holds, and copies a tensor once."""
    with ut.autograd.graph.allow_mutation_on_saved_tensors() as context:
        a = ut.rand(2, requires_grad=True).clone()
        b, c = a**2, a**2
        assert len(context.tid_to_weakhandle) == 1
        a.sin_()
        assert len(context.cloned) == 1
        d = a**2
        a.sin_()
        assert len(context.cloned) == 2
        del b, d
        assert len(context.cloned) == 1
        c.sum().backward()
        assert len(context.cloned) == 0


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
    with pytest.raises(NotImplementedError, match="defines the static method vmap"):
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
