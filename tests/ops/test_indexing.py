"""Subscripts: reading and writing against NumPy, gradients against finite differences, errors."""

from __future__ import annotations

import warnings
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp

import undertow as ut


def as_tensor(value: Any) -> Any:
    """An index with its arrays turned into tensors."""
    if isinstance(value, np.ndarray):
        return ut.tensor(value)
    if isinstance(value, tuple):
        return tuple(as_tensor(v) for v in value)
    return value


@st.composite
def indexed(draw: Any) -> Any:
    """A shape and an index for it that NumPy and torch read alike.

    NumPy counts an integer beside arrays among them when it places their dimensions; torch does
    not. So integers come with arrays only in `test_integer_beside_tensors`.
    """
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))
    arrays = draw(st.booleans())
    common = draw(hnp.array_shapes(min_dims=1, max_dims=2, max_side=3))
    key: list[Any] = []
    dim = 0
    ellipsis = False
    while dim < len(shape) and draw(st.integers(0, 5)):
        kinds = ["slice", "none", *(["array", "mask"] if arrays else ["int"])]
        kind = draw(st.sampled_from(kinds + ([] if ellipsis else ["ellipsis"])))
        size = shape[dim]
        if kind == "slice":
            ends = st.one_of(st.none(), st.integers(-6, 6))
            key.append(slice(draw(ends), draw(ends), draw(st.sampled_from([None, 1, 2, 3]))))
            dim += 1
        elif kind == "none":
            key.append(None)
            if sum(k is None for k in key) > 2:
                break
        elif kind == "int":
            key.append(draw(st.integers(-size, size - 1)))
            dim += 1
        elif kind == "array":
            side = draw(st.sampled_from([common, (1,)]))
            key.append(draw(hnp.arrays(np.int64, side, elements=st.integers(-size, size - 1))))
            dim += 1
        elif kind == "mask":
            if any(isinstance(k, np.ndarray) for k in key):
                continue  # the counts of two masks rarely broadcast
            ndim = draw(st.integers(1, len(shape) - dim))
            key.append(draw(hnp.arrays(bool, shape[dim : dim + ndim])))
            break
        else:
            key.append(Ellipsis)
            ellipsis = True
            break
    return shape, tuple(key)


def numbered(shape: Any) -> Any:
    return np.arange(1.0, 1 + np.prod(shape)).reshape(shape)


@settings(max_examples=400, deadline=None)
@given(indexed())
def test_read_like_numpy(case: Any) -> None:
    """Values agree, and a basic index is a view."""
    shape, key = case
    x = numbered(shape)
    t = ut.tensor(x)
    expected = x[key]
    found = t[as_tensor(key)]
    assert found.shape == np.shape(expected)
    np.testing.assert_array_equal(found.numpy(), expected)
    assert (found._base is t) == (not any(isinstance(k, np.ndarray) for k in key))


@settings(max_examples=300, deadline=None)
@given(indexed(), st.data())
def test_write_like_numpy(case: Any, data: Any) -> None:
    """Writing a broadcast value agrees; where indices repeat, the last value stays."""
    shape, key = case
    x = numbered(shape)
    t = ut.tensor(x)
    target = np.shape(x[key])
    drop = data.draw(st.integers(0, len(target)))
    value = -numbered(target[drop:])
    x[key] = value
    t[as_tensor(key)] = ut.tensor(value)
    np.testing.assert_array_equal(t.numpy(), x)
    x[key] = 7
    t[as_tensor(key)] = 7
    np.testing.assert_array_equal(t.numpy(), x)


@settings(max_examples=60, deadline=None)
@given(indexed())
def test_gradients(case: Any) -> None:
    """Reading and writing are differentiable to second order, repeated indices included."""
    shape, key = case
    if np.prod(shape) > 40:
        return
    key = as_tensor(key)
    x = ut.tensor(numbered(shape) / 10, requires_grad=True)

    def read(x: Any) -> Any:
        return (x * x)[key]

    taken = read(x)
    assert ut.autograd.gradcheck(read, (x,), fast_mode=True)
    assert ut.autograd.gradgradcheck(read, (x,), fast_mode=True)
    if not taken.numel():
        return
    value = ut.tensor(np.cos(numbered(taken.shape)), requires_grad=True)

    def write(x: Any, value: Any) -> Any:
        y = x * x
        y[key] = value * value
        return y * x

    assert ut.autograd.gradcheck(write, (x, value), fast_mode=True)
    assert ut.autograd.gradgradcheck(write, (x, value), fast_mode=True)


def test_integer_beside_tensors() -> None:
    """An integer is a basic index: unlike NumPy's it does not move the indexed dimensions."""
    x = numbered((2, 3, 4))
    i = np.array([0, 2, 2])
    t = ut.tensor(x)
    np.testing.assert_array_equal(t[0, :, as_tensor(i)].numpy(), x[0][:, i])
    np.testing.assert_array_equal(t[:, 1, as_tensor(i)].numpy(), x[:, 1][:, i])
    assert t[as_tensor(i[:2] // 2), :, as_tensor(i[:2])].shape == (2, 3)  # apart: to the front


@pytest.mark.parametrize(
    "key, shape",
    [
        (True, (1, 2, 3)),
        (False, (0, 2, 3)),
        ((0, True), (1, 3)),
        ((slice(None), True), (2, 1, 3)),
        (np.True_, (1, 2, 3)),
        (np.int64(1), (3,)),
        (np.array(1), (3,)),
        ([], (0, 3)),
        ([0, 1, 1], (3, 3)),
        ([True, False], (1, 3)),
        (range(2), (2, 3)),
        ((Ellipsis, [0, 0]), (2, 2)),
        ((), (2, 3)),
        (([[0, 1], [1, 0]],), (2, 2, 3)),
        ([[0, 1], [1, 0]], (2,)),
        (([0, 1], [[2], [1]]), (2, 2)),
    ],
)
def test_unusual_indices(key: Any, shape: Any) -> None:
    """Bools add a dimension; lists, ranges, arrays and NumPy's scalars index like tensors."""
    t = ut.tensor(numbered((2, 3)))
    assert t[key].shape == shape
    t[key] = 0.0
    assert float(t[key].sum()) == 0.0


def test_zero_d_tensors() -> None:
    """Zero-dimensional integers select (a view), bools add a dimension."""
    t = ut.tensor(numbered((2, 3)))
    one = t[ut.tensor(1)]
    assert one.shape == (3,)
    assert one._base is t
    assert t[ut.tensor(True)].shape == (1, 2, 3)
    assert ut.tensor(5.0)[ut.tensor(True)].shape == (1,)
    assert ut.tensor(5.0)[...].shape == ()
    assert ut.tensor(5.0)[None].shape == (1,)


def test_uint8_mask() -> None:
    """A uint8 tensor is a mask, with torch's warning."""
    t = ut.tensor(numbered((3,)))
    with pytest.warns(UserWarning, match="uint8"):
        found = t[ut.tensor([1, 0, 1], dtype=ut.uint8)]
    np.testing.assert_array_equal(found.numpy(), [1.0, 3.0])


@pytest.mark.parametrize(
    "key, error, match",
    [
        (3, IndexError, r"\[getitem\] index 3 is out of range for dimension 0 of size 3"),
        ((0, -5), IndexError, r"index -5 is out of range for dimension 1 of size 4"),
        ((0, 0, 0), IndexError, r"3 indices are too many for a tensor of shape \(3, 4\)"),
        ([0, 3], IndexError, r"index 3 is out of range for dimension 0 of size 3"),
        ((slice(None), [-5]), IndexError, r"index -5 .* dimension 1 of size 4"),
        (slice(None, None, -1), ValueError, r"positive step.*flip\(\)"),
        (slice(0, 2, 0), ValueError, r"zero"),
        (slice(0.5, 2), IndexError, r"integers"),
        (1.0, IndexError, r"got float 1\.0"),
        ("a", IndexError, r"got str 'a'"),
        ([0.5], IndexError, r"integers or bools, got \[0\.5\]"),
        (([[0], [1, 2]],), IndexError, r"integers or bools"),
        ([True, False], IndexError, r"mask of shape \(2,\) .* \(3, 4\)"),
        (([0, 1, 2], [0, 1]), IndexError, r"\(3,\), \(2,\) do not broadcast"),
        ((Ellipsis, Ellipsis), IndexError, r"at most one Ellipsis"),
    ],
)
def test_bad_index(key: Any, error: type[Exception], match: str) -> None:
    """What cannot index says why, and writing changes nothing."""
    t = ut.tensor(numbered((3, 4)))
    with pytest.raises(error, match=match) as caught:
        t[key]
    assert isinstance(caught.value, ut.errors.UndertowError)
    before = t.numpy().copy()
    with pytest.raises(error):
        t[key] = 0.0
    np.testing.assert_array_equal(t.numpy(), before)
    assert t._version == 0


def test_bad_dtypes_and_values() -> None:
    """Index dtypes and values are checked before anything is written."""
    t = ut.tensor(numbered((3, 4)))
    before = t.numpy().copy()
    for dtype in (ut.float64, ut.int16, ut.int8):
        with pytest.raises(IndexError, match=str(dtype).split(".")[-1]):
            t[ut.tensor([0], dtype=dtype)]
    with pytest.raises(ValueError, match=r"\(5,\) does not broadcast to \(4,\)"):
        t[0] = ut.ones(5, dtype=ut.float64)
    with pytest.raises(ValueError, match=r"\(3, 4\) does not broadcast to \(2, 4\)"):
        t[[0, 1]] = ut.ones(3, 4, dtype=ut.float64)
    with pytest.raises(TypeError, match=r"float64 and undertow\.float32"):
        t[[0]] = ut.ones(4)  # as in torch: an advanced index does not cast
    with pytest.raises(TypeError, match="complex"):
        t[0] = 1j
    with pytest.raises(TypeError, match="list"):
        t[0] = [1, 2, 3, 4]
    with pytest.raises(ValueError, match="nan"):
        ut.tensor([1, 2])[0] = float("nan")
    with pytest.raises(ValueError, match="300 is out of range"):
        ut.tensor([1, 2], dtype=ut.uint8)[0] = 300
    np.testing.assert_array_equal(t.numpy(), before)
    assert t._version == 0


def test_write_casts_and_strips() -> None:
    """A basic write casts, leading dimensions of size 1 are dropped, arrays are taken too."""
    t = ut.zeros(2, 3)
    t[0] = ut.tensor([1, 2, 3])
    t[1] = ut.ones(1, 1, 3, dtype=ut.float64)
    assert t.tolist() == [[1, 2, 3], [1, 1, 1]]
    t[[0, 1]] = ut.full((1, 1, 2, 3), 5.0)
    assert t.tolist() == [[5, 5, 5], [5, 5, 5]]
    t[0] = np.array([1.0, 2.0, 3.0])
    assert t.tolist()[0] == [1, 2, 3]
    i = ut.tensor([1, 2])
    i[0] = 1.9
    assert i.tolist() == [1, 2]


def test_write_through_views() -> None:
    """Writing into a view of a view changes the base, its history, and the other views."""
    x = ut.tensor(numbered((3, 4)), requires_grad=True)
    v = ut.tensor(np.array([10.0, 20.0]), requires_grad=True)
    y = x * 2
    other = y[0]
    y.T[1:, 0][[0, 2]] = v
    assert y.tolist()[0] == [2, 10, 6, 20]
    assert other.tolist() == [2, 10, 6, 20]
    (other * other).sum().backward()
    assert v.grad.tolist() == [20, 40]
    assert x.grad.tolist() == [[8, 0, 24, 0], [0] * 4, [0] * 4]


def test_last_write_wins() -> None:
    """Of values written to one element the last stays, and the gradient is its alone."""
    x = ut.zeros(3, requires_grad=True)
    v = ut.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1
    y[ut.tensor([0, 2, 0])] = v
    assert y.tolist() == [3, 0, 2]
    y.sum().backward()
    assert v.grad.tolist() == [0, 1, 1]
    assert x.grad.tolist() == [0, 1, 0]
    v.grad = None
    out = ut.zeros(3).scatter(0, ut.tensor([0, 2, 0]), v)
    out.sum().backward()
    assert v.grad.tolist() == [0, 1, 1]
    s = ut.tensor(1.0, requires_grad=True)
    ut.zeros(3).index_fill(0, ut.tensor([0, 2, 0]), s).sum().backward()
    assert float(s.grad) == 2


def test_changed_index_is_noticed() -> None:
    """An index tensor is saved for the gradient; changing it before backward is an error."""
    x = ut.ones(3, requires_grad=True)
    i = ut.tensor([0, 1])
    y = x[i]
    i[0] = 2
    with pytest.raises(ut.errors.VersionError, match="index"):
        y.sum().backward()


def test_leaf_cannot_be_written() -> None:
    """Writing into a leaf that requires gradients is an error, except without gradients."""
    x = ut.ones(3, requires_grad=True)
    for key in (0, [0, 1]):
        with pytest.raises(ut.errors.InplaceError, match="leaf"):
            x[key] = 2.0
    assert x.tolist() == [1, 1, 1]
    with ut.no_grad():
        x[0] = 2.0
        x[[1]] = 3.0
    assert x.tolist() == [2, 3, 1]


def test_value_that_overlaps() -> None:
    """A value that shares memory with the target is read before anything is written."""
    x = numbered((6,))
    t = ut.tensor(x)
    t[1:] = t[:-1]
    assert t.tolist() == [1, 1, 2, 3, 4, 5]
    t = ut.tensor(x)
    t[ut.arange(1, 6)] = t[:-1]
    assert t.tolist() == [1, 1, 2, 3, 4, 5]
    t = ut.tensor(x)
    t.index_add_(0, ut.tensor([1, 2, 3, 4, 5]), t[:-1])
    assert t.tolist() == [1, 3, 5, 7, 9, 11]


def test_half_precision_accumulates_in_single() -> None:
    """Many small additions to one float16 element are not lost."""
    src = ut.full((4096,), 0.25, dtype=ut.float16)
    index = ut.zeros(4096, dtype=ut.int64)
    assert float(ut.zeros(1, dtype=ut.float16).scatter_add(0, index, src)[0]) == 1024.0


def test_inplace_forms_return_the_tensor() -> None:
    """In-place forms write into zero-dimensional and strided tensors too."""
    z = ut.tensor(1.0)
    assert z.index_add_(0, ut.tensor([0]), ut.tensor(2.0)) is z
    assert z.scatter_(0, ut.tensor(0), 7.0) is z
    assert z.tolist() == 7.0
    t = ut.zeros(2, 3)
    assert t.T.put_(ut.tensor([0, 3]), ut.tensor([1.0, 2.0])).shape == (3, 2)
    assert t.tolist() == [[1, 0, 0], [0, 2, 0]]
    assert t.index_put_((ut.tensor([0]), ut.tensor([2])), ut.tensor([5.0])) is t
    assert t.tolist() == [[1, 0, 5], [0, 2, 0]]


def test_nan_reduced_into_a_place_receives_the_gradient() -> None:
    """As in amax: the gradient goes where the NaN is, it does not vanish."""
    x = ut.tensor([0.0, np.nan, 5.0], requires_grad=True)
    src = ut.tensor([np.nan, 1.0, np.nan, 2.0], requires_grad=True)
    out = x.scatter_reduce(0, ut.tensor([0, 0, 1, 2]), src, "amax")
    first, second = ut.autograd.grad(out.sum(), (x, src))
    assert first.tolist() == [0, 0.5, 1]
    assert second.tolist() == [1, 0, 0.5, 0]


def test_scatter_multiply_is_differentiable() -> None:
    """torch has no gradient for reduce="multiply"; we do, zeros included."""
    x = ut.tensor(np.array([2.0, 0.0, 3.0]), requires_grad=True)
    src = ut.tensor(np.array([5.0, 0.0, 4.0, 0.0]), requires_grad=True)
    index = ut.tensor([0, 0, 1, 2])

    def run(x: Any, src: Any) -> Any:
        return x.scatter(0, index, src, reduce="multiply")

    assert run(x, src).tolist() == [0, 0, 0]
    assert ut.autograd.gradcheck(run, (x, src))
    assert ut.autograd.gradgradcheck(run, (x, src))


def test_no_warnings() -> None:
    """Infinite and NaN elements pass through without NumPy's warnings."""
    x = ut.tensor([[np.inf, np.nan], [1.0, -np.inf]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        product = x @ x
        batched = ut.einsum("bij,bjk->bik", x[None], x[None])
        added = x.scatter_add(0, ut.tensor([[0, 0]]), x[1:])
    assert product.isnan().all()
    assert batched.isnan().all()
    np.testing.assert_array_equal(added.numpy(), [[np.inf, np.nan], [1.0, -np.inf]])


def test_masks_of_several_dimensions() -> None:
    """Masks of several dimensions, alone and between slices."""
    x = numbered((2, 3, 4))
    mask = x > 9
    t = ut.tensor(x)
    np.testing.assert_array_equal(t[ut.tensor(mask)].numpy(), x[mask])
    np.testing.assert_array_equal(t[:, ut.tensor(mask[1])].numpy(), x[:, mask[1]])
    np.testing.assert_array_equal(
        t.permute(2, 0, 1)[:, ut.tensor(mask[..., 1])].numpy(),
        x.transpose(2, 0, 1)[:, mask[..., 1]],
    )
    turned = t.permute(2, 1, 0)
    turned[ut.tensor(mask.transpose(2, 1, 0).copy())] = 0.0
    assert float(t.sum()) == x[~mask].sum()


def test_a_list_of_more_than_numbers_is_a_tuple() -> None:
    data = np.arange(12.0).reshape(3, 4)
    x = ut.tensor(data)
    pairs: list[tuple[list[Any], Any]] = [
        ([[0, 1], [1, 2]], ([0, 1], [1, 2])),
        ([slice(None), 0], (slice(None), 0)),
        ([ut.tensor([0, 2]), ..., None], ([0, 2], ..., None)),
        ([[True, False, True]], ([True, False, True],)),
        ([1, 1] * 20, ([1, 1] * 20,)),
        ([[0, 1]] * 33, (np.array([[0, 1]] * 33),)),  # too long
    ]
    for key, same in pairs:
        np.testing.assert_array_equal(x[key].numpy(), data[same])
    x[[[0, 1], [1, 2]]] = -1
    data[[0, 1], [1, 2]] = -1
    np.testing.assert_array_equal(x.numpy(), data)


@pytest.mark.parametrize("dtype", [ut.int8, ut.int16, ut.int32, ut.int64])
def test_a_zero_d_integer_is_a_number(dtype: Any) -> None:
    x = ut.tensor([1.0, 2.0, 3.0])
    assert x[ut.tensor(-1, dtype=dtype)].item() == 3
    assert x[ut.tensor(-1, dtype=dtype)]._base is x
    if dtype in (ut.int32, ut.int64):
        assert x.index_put((ut.tensor(0, dtype=dtype),), ut.tensor(9.0)).tolist() == [9, 2, 3]
    else:
        with pytest.raises(ut.errors.DTypeError, match=r"\[index_put\].*int64 or int32"):
            x.index_put((ut.tensor(0, dtype=dtype),), ut.tensor(9.0))


def test_one_element_by_one_mask_is_cast() -> None:
    """As masked_fill does; its gradient comes back in its own dtype."""
    mask = ut.tensor([True, False, True])
    value = ut.tensor(2.5, dtype=ut.float64, requires_grad=True)
    for write in (
        lambda x: x.__setitem__(mask, value),
        lambda x: x.__setitem__((mask, ...), value.reshape(1)),
        lambda x: x.index_put_((mask,), value),
    ):
        value.grad = None
        x = ut.zeros(3)
        write(x)
        assert x.dtype is ut.float32
        assert x.tolist() == [2.5, 0, 2.5]
        x.sum().backward()
        assert value.grad is not None
        assert (value.grad.item(), value.grad.dtype) == (2, ut.float64)
    x = ut.zeros(3)
    for key, wrong in (
        (ut.tensor([0, 2]), value),
        (mask, value.expand(2)),
        (mask, ut.tensor(1j)),
        ((ut.tensor([0]), ut.tensor([True])), value),
    ):
        with pytest.raises(ut.errors.UndertowError, match=r"\[setitem\]"):
            x[key] = wrong
    with pytest.raises(ut.errors.DTypeError, match="one dtype"):
        x.index_put_((mask,), value, accumulate=True)
    assert x.tolist() == [0, 0, 0]


def test_index_copy_of_one_element() -> None:
    x = ut.zeros(3, requires_grad=True)
    source = ut.tensor(5.0, requires_grad=True)
    y = x.index_copy(0, ut.tensor([1]), source)
    assert y.tolist() == [0, 5, 0]
    (y * y).sum().backward()
    assert source.grad is not None
    assert source.grad.item() == 10
    assert ut.zeros(3).index_copy_(0, ut.tensor(1), ut.tensor(5.0)).tolist() == [0, 5, 0]
    for shape, index in (((3,), [0, 1]), ((2, 3), [0])):
        with pytest.raises(ut.errors.ShapeError, match="source must have shape"):
            ut.zeros(shape).index_copy_(0, ut.tensor(index), ut.tensor(5.0))


def test_nothing_is_out_of_range_where_nothing_is_read() -> None:
    """As in torch: an index beside an empty one."""
    x = ut.zeros(1, 1, 2, 1, requires_grad=True)
    y = x[..., :, ut.tensor([1]), False]
    assert y.shape == (1, 1, 2, 0)
    y.sum().backward()
    assert x.grad is not None
    assert not bool(x.grad.any())
    z = ut.ones(2, 3)
    z[ut.tensor([5]), ut.zeros(3, dtype=ut.bool)] = 7
    assert bool((z == 1).all())


def test_negative_numbers_wrap_in_uint8_wherever_they_are_written() -> None:
    """As in torch: -1 is 255, while 256 is an error."""
    x, first = ut.arange(3, dtype=ut.uint8), ut.tensor([0])
    y = x.clone()
    y[0] = -1
    made = [y, x.masked_fill(x == 0, -1), x.index_fill(0, first, -1), x.scatter(0, first, -1)]
    assert [m.tolist() for m in made] == [[255, 1, 2]] * 4
    with pytest.raises(ValueError, match=r"\[setitem\] 256 is out of range"):
        y[0] = 256


def test_elements_cannot_be_deleted() -> None:
    with pytest.raises(TypeError, match="keeps its size"):
        del ut.ones(2)[0]


def test_where_of_any_condition_alone_is_its_nonzero() -> None:
    """One-hot tensors of integers are asked in this way, by mixtures of experts for one."""
    for x in (ut.tensor([[0, 2], [3, 0]]), ut.tensor([[0.0, 2.0], [0.5, 0.0]])):
        assert [at.tolist() for at in ut.where(x)] == [[0, 1], [1, 0]]
    with pytest.raises(ut.errors.DTypeError, match=r"\[where\] the condition"):
        ut.where(True)
