"""`__torch_dispatch__`: classes that hold tensors, and modes that see operators."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import undertow as ut
from undertow.utils._mode_utils import no_dispatch
from undertow.utils._python_dispatch import (
    BaseTorchDispatchMode,
    TorchDispatchMode,
    is_traceable_wrapper_subclass,
    return_and_correct_aliasing,
    transform_subclass,
)
from undertow.utils._pytree import tree_map_only

SEEN: list[str] = []


class Wrapper(ut.Tensor):
    """It holds a tensor, and computes with that."""

    inner: ut.Tensor

    @staticmethod
    def __new__(cls: Any, inner: Any) -> Any:
        made = ut.Tensor._make_wrapper_subclass(
            cls, inner.size(), strides=inner.stride(), dtype=inner.dtype, device=inner.device
        )
        made.inner = inner
        return made

    def __tensor_flatten__(self) -> Any:
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(inner: Any, context: Any, size: Any, stride: Any) -> Any:
        return Wrapper(inner["inner"])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        SEEN.append(str(func))
        args, kwargs = tree_map_only(Wrapper, lambda w: w.inner, (args, kwargs or {}))
        out = tree_map_only(ut.Tensor, Wrapper, func(*args, **kwargs))
        return return_and_correct_aliasing(func, args, kwargs, out)


X = ut.arange(12.0).reshape(3, 4)
CALLS = {
    "add.Tensor": lambda x: x + 1,
    "rsub.Scalar": lambda x: 1 - x,
    "sum.default": lambda x: x.sum(),
    "sum.dim_IntList": lambda x: x.sum(0),
    "max.dim": lambda x: x.max(0)[0],
    "gt.Scalar": lambda x: x > 1,
    "pow.Tensor_Scalar": lambda x: x**2,
    "select.int": lambda x: x[0],
    "slice.Tensor select.int": lambda x: x[1:, 2],
    "unsqueeze.default select.int": lambda x: x[..., None, 0],
    "index.Tensor": lambda x: x[:, [0, 2]],
    "_to_copy.default": lambda x: x.double(),
    "": lambda x: x.float(),
    "view.default": lambda x: x.view(4, 3),
    "permute.default": lambda x: x.permute(1, 0),
    "cat.default": lambda x: ut.cat([x, X]),
    "t.default mm.default": lambda x: x @ x.T,
    "linear.default": lambda x: ut.nn.functional.linear(x, ut.ones(2, 4)),
    "relu.default": lambda x: ut.nn.functional.relu(x, inplace=False),
    "linalg_norm.default": lambda x: ut.linalg.norm(x),
    "detach.default": lambda x: x.detach(),
    "clone.default": lambda x: x.clone(),
}


@pytest.mark.parametrize("names", CALLS)
def test_operators_have_the_names_of_torch(names: str) -> None:
    x = Wrapper(X.clone())
    SEEN.clear()
    found = CALLS[names](x)
    seen = " ".join(name.removeprefix("aten.") for name in SEEN)
    assert seen in names.split("|")
    assert type(found) is Wrapper
    expected = CALLS[names](X)
    assert found.shape == expected.shape
    assert found.dtype is expected.dtype
    assert ut.equal(found.inner, expected)


def test_what_a_wrapper_is() -> None:
    x = Wrapper(X)
    SEEN.clear()
    assert (x.shape, x.dtype, x.stride(), x.dim()) == ((3, 4), ut.float32, (4, 1), 2)
    assert str(x.device) == "cpu"
    assert x.is_cpu
    assert not x.is_meta
    assert not x.requires_grad
    assert repr(x) == "Wrapper(...)"
    assert SEEN == []
    assert float(x.sum()) == 66.0
    assert [float(row.sum()) for row in x] == [6.0, 22.0, 38.0]


def test_changes_in_place_and_assignments_reach_what_it_holds() -> None:
    x = Wrapper(X.clone())
    x[0] = 7.0
    x[1, 2:] = ut.tensor([1.0, 2.0])
    x[ut.tensor([2])] = 0.0
    assert x.inner.tolist() == [[7.0] * 4, [4.0, 5.0, 1.0, 2.0], [0.0] * 4]
    x.add_(1)
    assert x.inner[2].tolist() == [1.0] * 4


def test_gradients_are_those_of_what_it_holds() -> None:
    w = X.clone().requires_grad_()
    y = (Wrapper(w) * 3).sum()
    y.inner.backward()
    assert w.grad is not None
    assert w.grad.unique().tolist() == [3.0]


def test_wrappers_are_copied_and_pickled() -> None:
    x = Wrapper(X)
    for made in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(made) is Wrapper
        assert ut.equal(made.inner, X)
        assert str(made.device) == "cpu"


def test_wrappers_are_taken_apart() -> None:
    x = Wrapper(X)
    assert is_traceable_wrapper_subclass(x)
    assert not is_traceable_wrapper_subclass(X)
    made = transform_subclass(x, lambda name, inner: inner * 2)
    assert ut.equal(made.inner, X * 2)


def test_modes_see_operators() -> None:
    seen: list[str] = []

    class Names(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    layer = ut.nn.Linear(4, 2)
    with Names():
        layer(X).relu()[0].sum()
        with no_dispatch():
            X.exp()
    X.exp()
    assert seen == [
        "aten.linear.default",
        "aten.relu.default",
        "aten.select.int",
        "aten.sum.default",
    ]


def test_a_class_may_decline() -> None:
    class Never(Wrapper):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return NotImplemented

    with pytest.raises(TypeError, match="NotImplemented"):
        ut.exp(Never(X))


def test_a_mode_that_declines_is_an_error() -> None:
    class Declines(TorchDispatchMode):
        def __torch_dispatch__(self, *asked: Any) -> Any:
            return NotImplemented

    x = ut.ones(2)
    with Declines(), pytest.raises(TypeError, match=r"no implementation found for .*aten\.neg"):
        x.neg()
    assert x.neg().tolist() == [-1, -1]


@pytest.mark.parametrize("index", ["True", "False", "(mask, at)", "(slice(1), None, mask, 0)"])
def test_masks_and_bools_index_as_without_a_mode(index: str) -> None:
    x = ut.arange(24.0).reshape(2, 3, 4)
    given = {
        "True": True,
        "False": False,
        "(mask, at)": (ut.tensor([[True, False, True]] * 2), ut.tensor([0, 1, 2, 3])),
        "(slice(1), None, mask, 0)": (slice(1), None, ut.tensor([True, False, True]), 0),
    }[index]
    with BaseTorchDispatchMode():
        found = x[given]
    ut.testing.assert_close(found, x[given])


UNCHANGED = """
    F.batch_norm(x, mean, mean + 1, mean * 2, mean * 3)
    F.batch_norm(x, None, None, weight=mean, bias=mean, training=True, eps=0.1)
    F.instance_norm(x, mean, mean + 1, mean * 2, mean * 3, False)
    F.group_norm(x, 3, mean, eps=0.1)
    F.mse_loss(y, p, reduction="sum")
    F.binary_cross_entropy_with_logits(y, p)
    F.binary_cross_entropy_with_logits(y, p, pos_weight=p[0], reduction="sum")
    F.kl_div(y, p, reduction="batchmean")
    F.margin_ranking_loss(y, p, p.sign(), 0.1)
    F.hinge_embedding_loss(y, p.sign(), reduction="none")
    F.cosine_embedding_loss(y, p, p[:, 0].sign())
    F.poisson_nll_loss(y, p, full=True)
    F.nll_loss(y, at, reduction="none")
    F.dropout(y, 0.0)
    F.dropout(y.clone(), 0.0, True, True)
    F.embedding(at, y)
    F.embedding(at, y, padding_idx=1)
    F.unfold(x, 2)
    F.elu(y, 2.0, inplace=True)
    y.where(y > 0, p)
    y.where(y > 0, 0.0)
    y.polygamma(1)
    ut.tensordot(y, p, dims=([1], [1]))
    y.long()
    y.to(float)
    y.gather(1, ut.zeros(4, 2).long())
    ut.autograd.grad((w * w).sum(), w)[0]
"""


@pytest.mark.parametrize("call", [c.strip() for c in UNCHANGED.strip().splitlines()])
def test_a_mode_that_does_nothing_changes_nothing(call: str) -> None:
    """Operators have other words, and another order, than some functions that they stand for."""
    ut.manual_seed(0)
    given = {"x": ut.randn(2, 3, 4, 4), "y": ut.randn(4, 5), "p": ut.rand(4, 5) + 0.1}
    given |= {"mean": ut.rand(3), "at": ut.tensor([0, 3, 1, 2]), "ut": ut}
    given |= {"F": ut.nn.functional, "w": ut.ones(2, requires_grad=True)}
    wanted = eval(call, {**given, "y": given["y"].clone()})
    with BaseTorchDispatchMode():
        found = eval(call, given)
    ut.testing.assert_close(found, wanted)


def test_wrappers_are_made_by_place_as_well() -> None:
    """size, strides, storage_offset, memory_format, dtype, layout, device, as torch orders them."""
    made = ut.Tensor._make_wrapper_subclass(
        Wrapper, (2, 3), None, None, None, ut.float64, ut.strided, "cpu", False, True
    )
    assert made.shape == (2, 3)
    assert made.dtype is ut.float64
    assert made.requires_grad
