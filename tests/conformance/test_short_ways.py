"""Ways that functions take when their operands fit as they are, beside torch."""

import itertools

import pytest

import undertow as ut

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance

LETTERS = {
    "bool": [True, False, True],
    "uint8": [1, 255, 0],
    "int32": [1, -7, 0],
    "int64": [5, 2, 0],
}


def same(ours, theirs):
    assert str(ours.dtype).split(".")[-1] == str(theirs.dtype).split(".")[-1]
    assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("dtype", LETTERS)
@pytest.mark.parametrize(
    "name",
    [
        "bitwise_or",
        "bitwise_and",
        "bitwise_xor",
        "logical_or",
        "logical_not",
        "bitwise_not",
        "add",
        "mul",
        "sub",
        "eq",
        "lt",
        "maximum",
        "floor_divide",
        "remainder",
        "abs",
        "square",
        "clamp_min",
    ],
)
def test_tensors_of_one_whole_dtype(name, dtype):
    x, y = LETTERS[dtype], [1, 1, 1] if name != "sub" else [0, 1, 1]
    unary = name in ("logical_not", "bitwise_not", "abs", "square")
    results = []
    for library in (ut, torch):
        kind = getattr(library, dtype)
        operands = [library.tensor(x, dtype=kind), library.tensor(y, dtype=kind)]
        try:
            results.append(getattr(library, name)(*operands[: 1 if unary else 2]))
        except Exception as error:
            results.append(error)
    ours, theirs = results
    if isinstance(theirs, Exception):
        assert isinstance(ours, Exception), ours
    else:
        same(ours, theirs)


@pytest.mark.parametrize(
    "shapes", [((3,), (2, 3)), ((2, 3), (2, 3)), ((1, 3), (2, 3)), ((), (2, 3)), ((2, 3), (3,))]
)
@pytest.mark.parametrize("number", [0, 1, None])
def test_where_of_conditions_that_broadcast(shapes, number):
    """With gradients, which have the shapes of what they are of."""
    results = []
    for library in (ut, torch):
        condition = library.arange(6)[: 3 if shapes[0] == (3,) else 6] % 2 == 0
        condition = condition[0] if shapes[0] == () else condition[: 3 if 1 in shapes[0] else 6]
        condition = condition.reshape(shapes[0])
        x, y = (
            library.arange(6.0)[: 3 if len(shapes[1]) == 1 else 6].reshape(shapes[1]) + i
            for i in (1, 10)
        )
        given = [x.requires_grad_(), y.requires_grad_()]
        if number is not None:
            given[number] = 7.5
        out = library.where(condition, *given)
        out.pow(2).sum().backward()
        results.append([out, *(g.grad for g in given if not isinstance(g, float))])
    for ours, theirs in zip(*results, strict=True):
        same(ours.detach(), theirs.detach())


def test_cat_of_tensors_that_do_not_fit():
    shapes = [(2, 3), (2,), (2, 4), (3, 3), (0,), (2, 3, 1), (1, 3), ()]
    for one, other, dim in itertools.product(shapes, shapes, (0, 1, -1)):
        results = []
        for library in (ut, torch):
            try:
                results.append(library.cat([library.ones(one), library.zeros(other)], dim))
            except Exception as error:
                results.append(error)
        ours, theirs = results
        if isinstance(theirs, Exception):
            assert isinstance(ours, Exception), (one, other, dim)
        else:
            same(ours, theirs)


def test_cat_of_two_dtypes_and_gradients():
    results = []
    for library in (ut, torch):
        x = library.ones(2, 2, requires_grad=True)
        out = library.cat([x, library.ones(2, 1, dtype=library.int64), x], 1)
        (out * library.arange(10.0).reshape(2, 5)).sum().backward()
        results.append((out.detach(), x.grad))
    for ours, theirs in zip(*results, strict=True):
        same(ours, theirs)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "float32", "float64"])
@pytest.mark.parametrize("given", [(5,), (0,), (0, 5), (1, 5), (0, 6, 2), (5, 0, -2), (0, -3, -1)])
def test_arange(given, dtype):
    if dtype == "uint8" and min(given) < 0:
        pytest.skip("no negative numbers")
    same(*(x.arange(*given, dtype=getattr(x, dtype)) for x in (ut, torch)))


def test_isin():
    for x, y, invert in itertools.product(([1, 2, 3], [[1], [4]], []), ([2], [2, 3], []), (0, 1)):
        results = [
            library.isin(
                library.tensor(x, dtype=library.int64),
                library.tensor(y, dtype=library.int64),
                invert=bool(invert),
            )
            for library in (ut, torch)
        ]
        same(*results)


def test_layer_norm_of_shapes_that_do_not_fit():
    x = ut.ones(2, 3)
    for shape in ((2,), (3, 2), (), (1, 2, 3), [2]):
        with pytest.raises(ValueError, match=r"\[layer_norm\]"):
            ut.nn.functional.layer_norm(x, shape)
    for shape in ((3,), [3], (2, 3)):
        ours = ut.nn.functional.layer_norm(x + ut.arange(3), shape, ut.full(tuple(shape), 2.0))
        theirs = torch.nn.functional.layer_norm(
            torch.ones(2, 3) + torch.arange(3), shape, torch.full(tuple(shape), 2.0)
        )
        assert torch.allclose(torch.tensor(ours.tolist()), theirs, atol=1e-6)
