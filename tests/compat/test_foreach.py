"""`_foreach_*`: one launch gives what each tensor by itself would, and records where it must."""

from __future__ import annotations

from typing import Any

import pytest

import undertow as ut
from undertow import foreach
from undertow.errors import ArgumentError, DTypeError, ShapeError

SHAPES = [(), (5,), (3, 4), (0,), (130, 70)]


def tensors(seed: int = 0, dtype: Any = ut.float32) -> list[ut.Tensor]:
    ut.manual_seed(seed)
    return [ut.rand(shape, dtype=dtype) * 0.8 + 0.1 for shape in SHAPES]


@pytest.mark.parametrize("dtype", [ut.float32, ut.float64], ids=str)
@pytest.mark.parametrize("name", foreach._UNARY)
def test_a_launch_is_what_each_would_be(name: str, dtype: Any) -> None:
    xs = tensors(dtype=dtype)
    expected = [getattr(ut, name)(x) for x in xs]
    found = getattr(ut, f"_foreach_{name}")(xs)
    assert isinstance(found, tuple)
    for a, b in zip(found, expected, strict=True):
        ut.testing.assert_close(a, b, rtol=3e-7, atol=0)
    versions = [x._version for x in xs]
    assert getattr(ut, f"_foreach_{name}_")(xs)[0] is xs[0]
    for a, b, version in zip(xs, expected, versions, strict=True):
        ut.testing.assert_close(a, b, rtol=3e-7, atol=0)
        assert a._version > version


def test_pairs_views_and_broadcasts() -> None:
    xs, ys = tensors(), tensors(1)
    for name in ("add", "sub", "mul", "div", "maximum", "minimum", "clamp_min", "clamp_max"):
        found = getattr(ut, f"_foreach_{name}")(xs, ys)
        for a, x, y in zip(found, xs, ys, strict=True):
            other = {"clamp_min": "maximum", "clamp_max": "minimum"}.get(name, name)
            assert ut.equal(a, getattr(ut, other)(x, y))
    x = ut.arange(12.0).reshape(3, 4)
    ut._foreach_mul_([x.t(), ut.ones(2)], 2.0)  # not contiguous
    assert x.tolist() == (ut.arange(12.0).reshape(3, 4) * 2).tolist()
    assert ut._foreach_add([ut.ones(2, 3)], [ut.ones(3)])[0].shape == (2, 3)
    assert ut._foreach_add([ut.ones(2)], [ut.ones(2, dtype=ut.float64)])[0].dtype is ut.float64
    assert ut._foreach_mul([ut.tensor([1j])], 2.0)[0].item() == 2j


def test_parameters_and_gradients() -> None:
    ps = [ut.nn.Parameter(ut.ones(3)), ut.nn.Parameter(ut.ones(2))]
    with ut.no_grad():
        ut._foreach_add_(ps, [ut.ones(3), ut.ones(2)], alpha=2)
    assert ps[0].tolist() == [3, 3, 3]
    out = ut._foreach_mul(ps, [2.0, 3.0])
    sum(o.sum() for o in out).backward()
    assert ps[1].grad.tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="leaf"):
        ut._foreach_add_(ps, 1.0)


def test_arguments_by_name_and_wrong_ones() -> None:
    one = [ut.ones(2)]
    assert ut._foreach_add(one, other=[ut.ones(2)], alpha=3)[0].tolist() == [4, 4]
    assert ut._foreach_add(one, scalar=2)[0].tolist() == [3, 3]
    assert ut._foreach_addcmul(one, tensor1=one, tensor2=one, value=3)[0].tolist() == [4, 4]
    assert ut._foreach_lerp(one, [ut.zeros(2)], weight=0.25)[0].tolist() == [0.75, 0.75]
    with pytest.raises(ArgumentError, match="at least one tensor"):
        ut._foreach_add([], 1)
    with pytest.raises(ShapeError, match="got 1 and 2"):
        ut._foreach_mul(one, [1.0, 2.0])
    with pytest.raises(ArgumentError, match="takes a list"):
        ut._foreach_mul(one, one, alpha=2)
    with pytest.raises(DTypeError, match="cannot be written"):
        ut._foreach_maximum_([ut.ones(2, dtype=ut.int64)], 0.5)


def test_groups_of_tensors() -> None:
    from undertow.utils import _foreach_utils as utils

    a, b, c = ut.ones(1), ut.ones(2, dtype=ut.float64), ut.ones(3)
    found = utils._group_tensors_by_device_and_dtype([[a, b, c], []], with_indices=True)
    lists, indices = found[a.device, ut.float32]
    assert lists[0][1] is c
    assert indices == [0, 2]
    assert utils._has_foreach_support([a], a.device)


def test_the_list_that_was_given_comes_back() -> None:
    xs = tensors()
    assert ut._foreach_sqrt_(xs) is xs
    assert ut._foreach_add_(xs, 1.0) is xs
    assert ut._foreach_add_(xs, tensors(1)) is xs
    assert ut._foreach_lerp_(xs, tensors(1), 0.3) is xs
    whole = (ut.ones(2, dtype=ut.int64),)
    assert ut._foreach_neg_(whole) is whole


@pytest.mark.parametrize("dtype", [ut.float32, ut.float64], ids=str)
def test_norms_of_many_tensors(dtype: Any) -> None:
    xs = [*tensors(dtype=dtype), ut.rand(90, 100, dtype=dtype).t()]
    xs += [ut.rand(9, 4, dtype=dtype)[:, 1]]
    xs += [ut.tensor([ut.inf, 1], dtype=dtype), ut.tensor([ut.nan, 1], dtype=dtype)]
    found = ut._foreach_norm(xs)
    for a, x in zip(found, xs, strict=True):
        assert a.shape == ()
        ut.testing.assert_close(a, ut.linalg.vector_norm(x), equal_nan=True)
    found[0].add_(1)  # memory of its own
    ut.testing.assert_close(found[1], ut.linalg.vector_norm(xs[1]))
    leaves = [x.detach().requires_grad_() for x in xs[:3]]
    sum(ut._foreach_norm(leaves)).backward()
    ut.testing.assert_close(leaves[1].grad, xs[1] / ut.linalg.vector_norm(xs[1]))
    mixed = ut._foreach_norm([ut.ones(4), ut.ones(9, dtype=ut.float64), ut.ones(4).half()])
    assert [n.dtype for n in mixed] == [ut.float32, ut.float64, ut.float16]
    assert [n.item() for n in mixed] == [2, 3, 2]


def test_zeros_count_as_changes() -> None:
    xs = [*tensors(), ut.ones(2, dtype=ut.int64), ut.ones(300, 500), ut.ones(3, 4).t()]
    for some in (xs, xs[:5], [xs[-2]], [xs[-1]]):
        for x in some:
            x.fill_(1)
        versions = [x._version for x in some]
        assert ut._foreach_zero_(some) is some
        for x, version in zip(some, versions, strict=True):
            assert not x.any()
            assert x._version > version
    with pytest.raises(RuntimeError, match="clone"):
        ut._foreach_zero_([ut.ones(1).expand(3)])
    with pytest.raises(RuntimeError, match="leaf"):
        ut._foreach_zero_([ut.ones(3, requires_grad=True)])
    with pytest.raises(RuntimeError, match="clone"):
        ut._foreach_copy_([ut.ones(1).expand(3)], [ut.ones(3)])
    x = ut.ones(3, requires_grad=True)
    y = x * 2
    z = y.exp()
    ut._foreach_zero_([y.detach()])
    z.sum().backward()
    target = [ut.zeros(2), ut.zeros(3, dtype=ut.float64)]
    assert ut._foreach_copy_(target, [ut.ones(2), ut.ones(3)]) is target
    assert target[1].tolist() == [1, 1, 1]


def test_numbers_that_are_alike_and_others() -> None:
    for weights in ([0.5] * 5, [0.5, 0.5, 0.5, 0.5, 0.25], ut.full((5,), 0.5)):
        xs, ys = tensors(), tensors(1)
        each = weights.tolist() if isinstance(weights, ut.Tensor) else weights
        expected = [ut.addcdiv(x, y, y, value=w) for x, y, w in zip(xs, ys, each, strict=True)]
        ut._foreach_addcdiv_(xs, ys, ys, weights)
        for a, b in zip(xs, expected, strict=True):
            ut.testing.assert_close(a, b)
    xs = tensors()
    expected = [x * 0.5 for x in xs]
    ut._foreach_mul_(xs, ut.tensor(0.5, dtype=ut.float64))
    assert all(ut.equal(a, b) for a, b in zip(xs, expected, strict=True))
    scale = ut.tensor(0.5, requires_grad=True)
    grown = [x * 1 for x in xs]
    ut._foreach_mul_(grown, scale)
    sum(g.sum() for g in grown).backward()
    ut.testing.assert_close(scale.grad, sum(x.sum() for x in xs))
    with pytest.raises(DTypeError, match="cannot be stored"):
        ut._foreach_mul_([ut.ones(2, dtype=ut.int64)], [0.5])


def test_whole_numbers_and_booleans() -> None:
    whole = [ut.arange(1, 4)]
    with pytest.raises(DTypeError, match="does not divide integers"):
        ut._foreach_addcdiv(whole, whole, whole, value=2)
    flags = [ut.tensor([True, False])]
    assert ut._foreach_addcmul(flags, flags, flags, value=True)[0].dtype is ut.bool
    assert ut._foreach_addcmul(whole, whole, whole, value=2)[0].tolist() == [3, 10, 21]
