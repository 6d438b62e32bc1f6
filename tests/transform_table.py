"""The op table under transforms: each sample as a function of its tensors, and batches of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import undertow as ut
from op_cases import flat, seed_of, tensors, within
from op_samples import OpInfo, Sample
from undertow.utils._pytree import tree_flatten, tree_unflatten


def as_function(info: OpInfo, sample: Sample) -> tuple[Callable[..., Any], list[ut.Tensor]]:
    """The op as a function of the tensors of a sample, and these; what is differentiated needs it.

    Its results are the tensors that the op gives, in a tuple.
    """
    args, kwargs = tensors(sample.args, grad=True), tensors(sample.kwargs, grad=True)
    values, spec = tree_flatten((args, kwargs))
    places = [i for i, v in enumerate(values) if isinstance(v, ut.Tensor)]

    def run(*given: Any) -> Any:
        filled = list(values)
        for place, value in zip(places, given, strict=True):
            filled[place] = value
        args, kwargs = tree_unflatten(filled, spec)
        return tuple(t for t in flat(within(info)(*args, **kwargs)) if isinstance(t, ut.Tensor))

    return run, [values[i] for i in places]


def other_element(x: ut.Tensor) -> ut.Tensor:
    """A tensor that could stand in the place of another."""
    return (x.detach() * 0.97).to(x.dtype) if x.dtype.is_differentiable else x.clone()


def stacked(rows: list[Any]) -> list[ut.Tensor]:
    """The results of several calls, stacked."""
    return [ut.stack(column) for column in zip(*rows, strict=True)]


def same(found: Any, expected: Any, rtol: float = 1e-6, atol: float = 1e-8) -> None:
    """Results that agree; what is not a number in both does."""
    assert len(found) == len(expected)
    for f, e in zip(found, expected, strict=True):
        assert f.shape == e.shape
        assert f.dtype is e.dtype
        ut.testing.assert_close(f, e, rtol=rtol, atol=atol, equal_nan=True)


def of_floats(info: OpInfo, sample: Sample) -> Any:
    """The op as a function of what is differentiated, these inputs, and tangents of them."""
    run, xs = as_function(info, sample)
    places = [i for i, x in enumerate(xs) if x.requires_grad]
    xs = [x.detach() for x in xs]

    def function(*given: Any) -> Any:
        whole = [x.clone() for x in xs]
        for i, g in zip(places, given, strict=True):
            whole[i] = g
        return tuple(o for o in run(*whole) if o.dtype.is_differentiable)

    primals = tuple(xs[i] for i in places)
    random = np.random.default_rng(0)
    return function, primals, tuple(ut.tensor(seed_of(random, x)).to(x.dtype) for x in primals)
