"""Products where the table cannot look: kinks, saved memory, order of contraction."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import undertow as ut


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, math.inf])
@pytest.mark.parametrize("mode", ["use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"])
def test_cdist_of_equal_rows(p: float, mode: str) -> None:
    """The gradient of a zero distance is zero, never NaN."""
    data = np.array([[1.0, 2.0], [3.0, 4.0]])
    x, y = ut.tensor(data, requires_grad=True), ut.tensor(data[:1], requires_grad=True)
    found = ut.cdist(x, y, p=p, compute_mode=mode)
    assert float(found[0, 0]) == 0
    found[0].sum().backward()
    assert x.grad.tolist() == [[0, 0], [0, 0]]
    assert y.grad.tolist() == [[0, 0]]


def test_beta_zero_ignores_nan_and_has_a_zero_gradient() -> None:
    """With beta=0 not even NaN passes from the input, yet the input stays in the graph."""
    x = ut.full((2, 2), math.nan, requires_grad=True)
    out = ut.addmm(x, ut.ones(2, 3), ut.ones(3, 2), beta=0)
    assert out.tolist() == [[3, 3], [3, 3]]
    (g,) = ut.autograd.grad(out.sum(), x)
    assert g.tolist() == [[0, 0], [0, 0]]


def test_only_the_other_operand_is_saved() -> None:
    """A product whose second operand needs no gradient does not save the first."""
    a, b = ut.ones(2, 3, requires_grad=True), ut.ones(3, 2)
    out = a @ b
    assert out.grad_fn.saved == (b,)
    assert (b @ a).grad_fn.saved == (b,)


def test_changed_operand_is_noticed() -> None:
    """Changing a saved operand in place is an error in backward."""
    a, b = ut.ones(2, 3, requires_grad=True), ut.ones(3, 2)
    out = a @ b
    b.add_(1)
    with pytest.raises(ut.errors.VersionError, match="matmul"):
        out.sum().backward()


def test_contraction_order_keeps_intermediates_small() -> None:
    """A chain is contracted from the end that stays small, whatever the order of writing."""
    n = 2000
    v = ut.ones(n, dtype=ut.float64)
    # left to right, the outer product of v with itself would come first: n × n elements
    out = ut.einsum("i,j,jk->ik", v, v, ut.ones(n, 2, dtype=ut.float64))
    assert out.shape == (n, 2)
    assert float(out[0, 0]) == n


@pytest.mark.parametrize("dtype", [ut.float16, ut.bfloat16, ut.float32, ut.int8, ut.int64])
def test_dtype_is_kept(dtype: Any) -> None:
    """Products keep their dtype; half precision is summed in single."""
    a = ut.ones(2, 100).to(dtype)
    out = a @ a.T
    assert out.dtype is dtype
    assert float(out[0, 0]) == a.shape[1]


def test_array_operands() -> None:
    """An ndarray on either side of @ gives a tensor."""
    a = np.ones((2, 3))
    t = ut.ones(3, 2, dtype=ut.float64)
    assert isinstance(a @ t, ut.Tensor)
    assert (a @ t).tolist() == (t.T @ a.T).tolist() == [[3, 3], [3, 3]]


def test_counted_distances_keep_nan() -> None:
    """With p = 0, too, a difference that is NaN makes the distance NaN, as in torch."""
    nan, inf = math.nan, math.inf
    x = ut.tensor([[nan, 1.0], [2.0, 1.0], [inf, 1.0], [inf, 0.0]])
    np.testing.assert_array_equal(ut.pdist(x, p=0).numpy(), [nan, nan, nan, 1, 2, nan])
    table = ut.cdist(x, x, p=0).numpy()
    np.testing.assert_array_equal(table[1], [nan, 0, 1, 2])
    np.testing.assert_array_equal(table[2], [nan, 1, nan, nan])
    assert x[0].norm(0) == 2  # but not a norm


def test_einsum_promotes_where_nothing_is_summed() -> None:
    """As in torch, where such an equation is a multiplication, others products of matrices."""
    a, b = ut.ones(2, 3, dtype=ut.float64), ut.full((3, 4), 2, dtype=ut.float32)
    out = ut.einsum("ij,jk->ijk", a, b)
    assert out.dtype is ut.float64
    assert out.tolist() == [[[2.0] * 4] * 3] * 2
    with pytest.raises(ut.errors.DTypeError, match=r"\[einsum\] expects tensors of one dtype"):
        ut.einsum("ij,jk->ik", a, b)


def test_normalize_writes_into_what_it_is_given() -> None:
    v = ut.tensor([3.0, 4.0])
    assert ut.nn.functional.normalize(v, dim=0, out=v) is v
    assert v.tolist() == pytest.approx([0.6, 0.8])
