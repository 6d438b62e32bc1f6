"""Distributions beside torch's: densities, moments, entropies, divergences and their gradients."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import undertow as ut
from distribution_table import CASES, IDS, TABLE, made

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance
ASKED = ("mean", "mode", "variance", "stddev")
# Where torch's answer is wrong: the mode of Kumaraswamy is NaN there.
WRONG = {("Kumaraswamy", "mode")}
ROUGH = {"VonMises": 2e-4}  # its Bessel functions are single-precision fits there


@pytest.fixture(autouse=True)
def in_double() -> Iterator[None]:
    """What torch makes on the way is of the default dtype, also beside doubles."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def close(found: Any, expected: Any, rtol: float = 1e-8) -> None:
    """The same values and shape."""
    assert tuple(found.shape) == tuple(expected.shape)
    np.testing.assert_allclose(
        np.asarray(found.detach()), expected.detach().numpy(), rtol=rtol, atol=1e-9
    )


def slopes(lib: Any, total: Any, leaves: list[Any]) -> list[Any]:
    """The gradients of a sum, zeros where it does not depend on a parameter."""
    found = lib.autograd.grad(total.sum(), leaves, allow_unused=True)
    return [lib.zeros_like(x) if g is None else g for g, x in zip(found, leaves, strict=True)]


def ask(call: Any) -> Any:
    """What torch gives, or None if it has nothing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call()
    except NotImplementedError:
        return None


@pytest.mark.parametrize("name, params, value", CASES, ids=IDS)
def test_moments_and_shapes(name: str, params: Any, value: Any) -> None:
    """Mean, mode, variance, batch and event shapes, supports and what can be sampled."""
    ours, theirs = made(ut, name, params)[0], made(torch, name, params)[0]
    assert tuple(ours.batch_shape) == tuple(theirs.batch_shape)
    assert tuple(ours.event_shape) == tuple(theirs.event_shape)
    assert ours.has_rsample == theirs.has_rsample
    assert ours.has_enumerate_support == theirs.has_enumerate_support
    for asked in ASKED:
        expected = ask(lambda asked=asked: getattr(theirs, asked))
        if expected is not None and (name, asked) not in WRONG:
            close(getattr(ours, asked), expected, ROUGH.get(name, 1e-8))
    if theirs.has_enumerate_support:
        close(ours.enumerate_support(), theirs.enumerate_support())
    draw = ours.sample((4,))
    assert tuple(draw.shape) == tuple(ask(lambda: theirs.sample((4,))).shape)
    assert tuple(ours.expand((3, *ours.batch_shape)).sample().shape) == (
        3,
        *theirs.batch_shape,
        *theirs.event_shape,
    )


@pytest.mark.parametrize("name, params, value", CASES, ids=IDS)
def test_densities_and_their_gradients(name: str, params: Any, value: Any) -> None:
    """log_prob, cdf, icdf and entropy, with the gradients in every parameter."""
    x, y = ut.tensor(value), torch.tensor(value)
    calls = (
        lambda d, lib: d.log_prob(x if lib is ut else y),
        lambda d, lib: d.cdf(x if lib is ut else y),
        lambda d, lib: d.icdf(lib.full(tuple(d.batch_shape), 0.3, dtype=lib.float64)),
        lambda d, lib: d.entropy(),
        lambda d, lib: d.expand((2, *d.batch_shape)).log_prob(x if lib is ut else y),
    )
    for number, call in enumerate(calls):
        ours, leaves = made(ut, name, params, grad=True)
        theirs, torch_leaves = made(torch, name, params, grad=True)
        expected = ask(lambda call=call, theirs=theirs: call(theirs, torch))
        if expected is None or (name == "ContinuousBernoulli" and number in (1, 2)):
            continue  # near one half, torch takes a uniform distribution's
        found = call(ours, ut)
        close(found, expected, ROUGH.get(name, 1e-8))
        if expected.requires_grad:
            wanted = ask(lambda e=expected, x=torch_leaves: slopes(torch, e, x))
            if wanted is None:  # the cdf of gamma variables has no derivative there
                continue
            for a, b in zip(slopes(ut, found, leaves), wanted, strict=True):
                if "scale_tril" in params:  # what is above the diagonal is not looked at
                    a, b = (t.tril() if t.ndim > 1 else t for t in (a, b))
                close(a, b, rtol=ROUGH.get(name, 1e-6))


PAIRS = sorted(
    (p.__name__, q.__name__)
    for p, q in torch.distributions.kl._KL_REGISTRY
    if p.__name__ in TABLE and q.__name__ in TABLE
)


@pytest.mark.parametrize("first, second", PAIRS)
def test_divergences(first: str, second: str) -> None:
    """For every pair that torch knows, with gradients in both."""
    found = []
    for lib in (ut, torch):
        params = TABLE[first][0][0]
        if first == "Uniform":  # torch has infinity where its ends are those of the other's support
            params = {"low": np.array([0.1, 0.2]), "high": np.array([0.9, 0.7])}
        p, leaves = made(lib, first, params, grad=True)
        others = {
            k: v * 0.9 + 0.05 if isinstance(v, np.ndarray) else v
            for k, v in TABLE[second][0][0].items()
        }
        if "covariance_matrix" in others:
            others["covariance_matrix"] = TABLE[second][0][0]["covariance_matrix"] * 1.5
        if "probs" in others and others["probs"].ndim == 2:
            others["probs"] = TABLE[second][0][0]["probs"][::-1].copy()
        if second == "Uniform":
            others = {"low": np.array([-1.0, -2.0]), "high": np.array([3.0, 4.0])}
        try:
            q, more = made(lib, second, others, grad=True)
            total = lib.distributions.kl_divergence(p, q)
        except NotImplementedError:
            found.append(None)
            continue
        finite = bool(lib.isfinite(total.sum()))
        grads = slopes(lib, total, leaves + more) if finite and total.requires_grad else []
        found.append((total, grads))
    ours, theirs = found
    assert (ours is None) == (theirs is None)
    if theirs is not None:
        close(ours[0], theirs[0])
        for a, b in zip(ours[1], theirs[1], strict=True):
            close(a, b, rtol=1e-6)


TRANSFORMS: dict[str, tuple[Any, Any]] = {
    "AbsTransform": (lambda d, t: d.AbsTransform(), [0.5, 2.0]),
    "AffineTransform": (lambda d, t: d.AffineTransform(t([1.0, 2.0]), -1.5), [0.5, 2.0]),
    "ExpTransform": (lambda d, t: d.ExpTransform(), [0.5, -2.0]),
    "PowerTransform": (lambda d, t: d.PowerTransform(t(-1.5)), [0.5, 2.0]),
    "SigmoidTransform": (lambda d, t: d.SigmoidTransform(), [0.5, -2.0]),
    "SoftplusTransform": (lambda d, t: d.SoftplusTransform(), [0.5, -2.0]),
    "TanhTransform": (lambda d, t: d.TanhTransform(), [0.5, -1.0]),
    "SoftmaxTransform": (lambda d, t: d.SoftmaxTransform(), [0.5, -1.0, 2.0]),
    "StickBreakingTransform": (lambda d, t: d.StickBreakingTransform(), [0.5, -1.0, 2.0]),
    "CorrCholeskyTransform": (lambda d, t: d.CorrCholeskyTransform(), [0.5, -1.0, 0.2]),
    "LowerCholeskyTransform": (lambda d, t: d.LowerCholeskyTransform(), [[0.5, 1.0], [0.2, 0.1]]),
    "PositiveDefinite": (lambda d, t: d.PositiveDefiniteTransform(), [[0.5, 0.0], [0.2, 0.1]]),
    "ReshapeTransform": (lambda d, t: d.ReshapeTransform((4,), (2, 2)), [0.5, 2.0, 1.0, 3.0]),
    "ComposeTransform": (
        lambda d, t: d.ComposeTransform([d.AffineTransform(1.0, 2.0), d.ExpTransform()]),
        [0.5, -2.0],
    ),
    "IndependentTransform": (lambda d, t: d.IndependentTransform(d.ExpTransform(), 1), [0.5, 1.0]),
    "StackTransform": (
        lambda d, t: d.StackTransform([d.ExpTransform(), d.TanhTransform()], -1),
        [[0.5, 0.1], [0.2, 0.3]],
    ),
    "CatTransform": (
        lambda d, t: d.CatTransform([d.ExpTransform(), d.TanhTransform()], 0, [1, 2]),
        [0.5, 0.1, 0.2],
    ),
    "Cumulative": (
        lambda d, t: d.CumulativeDistributionTransform(d.Normal(t(0.0), t(1.0))),
        [0.5, 0.1],
    ),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name: str) -> None:
    """Values, inverses and Jacobians."""
    make, numbers = TRANSFORMS[name]
    found = []
    for lib in (ut, torch):
        tensor = lambda v, lib=lib: lib.tensor(v, dtype=lib.float64)
        transform = make(lib.distributions, tensor)
        x = tensor(numbers)
        y = transform(x)
        jacobian = ask(lambda t=transform, x=x, y=y: t.log_abs_det_jacobian(x, y))
        assert tuple(transform.forward_shape(x.shape)) == tuple(y.shape)
        assert tuple(transform.inverse_shape(y.shape)) == tuple(x.shape)
        assert transform.inv.inv == transform
        found.append((y, transform.inv(y), jacobian, transform.bijective))
    ours, theirs = found
    close(ours[0], theirs[0])
    close(ours[1], theirs[1])
    assert ours[3] == theirs[3]
    if theirs[2] is not None:
        close(ours[2], theirs[2])


CONSTRAINTS: list[Any] = [
    lambda c: c.positive,
    lambda c: c.nonnegative,
    lambda c: c.real,
    lambda c: c.greater_than(2.0),
    lambda c: c.less_than(2.0),
    lambda c: c.unit_interval,
    lambda c: c.interval(-1.0, 3.0),
    lambda c: c.half_open_interval(-1.0, 3.0),
    lambda c: c.simplex,
    lambda c: c.real_vector,
    lambda c: c.independent(c.positive, 1),
    lambda c: c.corr_cholesky,
    lambda c: c.cat([c.positive, c.real], 0, [1, 2]),
    lambda c: c.stack([c.positive, c.real, c.unit_interval], 0),
]


@pytest.mark.parametrize("index", range(len(CONSTRAINTS)))
@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
def test_ways_to_constraints(index: int, registry: str) -> None:
    """The same way leads into each region, and there the constraint holds."""
    x = [0.3, -0.7, 1.1]
    ours = getattr(ut.distributions, registry)(CONSTRAINTS[index](ut.distributions.constraints))
    theirs = getattr(torch.distributions, registry)(
        CONSTRAINTS[index](torch.distributions.constraints)
    )
    found = ours(ut.tensor(x, dtype=ut.float64))
    close(found, theirs(torch.tensor(x)))
    assert bool(CONSTRAINTS[index](ut.distributions.constraints).check(found).all())


@pytest.mark.parametrize(
    "call",
    [
        lambda lib: lib.distributions.Normal(0.0, -1.0),
        lambda lib: lib.distributions.Uniform(1.0, 0.0),
        lambda lib: lib.distributions.Bernoulli(probs=1.5),
        lambda lib: lib.distributions.Bernoulli(),
        lambda lib: lib.distributions.Bernoulli(probs=0.5, logits=0.0),
        lambda lib: lib.distributions.Categorical(lib.tensor(0.5)),
        lambda lib: lib.distributions.Gamma(1.0, 1.0).log_prob(lib.tensor(-1.0)),
        lambda lib: lib.distributions.Beta(1.0, 1.0).log_prob(lib.tensor(1.5)),
        lambda lib: lib.distributions.Normal(lib.zeros(2), 1.0).log_prob(lib.zeros(3)),
        lambda lib: lib.distributions.MultivariateNormal(lib.zeros(2), -lib.eye(2)),
        lambda lib: lib.distributions.Poisson(2.0).log_prob(lib.tensor(0.5)),
        lambda lib: lib.distributions.Independent(lib.distributions.Normal(0.0, 1.0), 1),
    ],
)
def test_both_refuse(call: Any) -> None:
    """With a ValueError."""
    for lib in (ut, torch):
        with pytest.raises(ValueError):
            call(lib)


def test_names() -> None:
    """Everything that torch promises is there."""
    assert set(torch.distributions.__all__) <= set(dir(ut.distributions))
    for name in ("constraints", "transforms", "kl", "utils", "constraint_registry"):
        theirs = getattr(torch.distributions, name)
        promised = getattr(theirs, "__all__", ["broadcast_all", "logits_to_probs", "lazy_property"])
        assert set(promised) <= set(dir(getattr(ut.distributions, name)))


def test_a_mixture() -> None:
    """Of normal variables, and of vectors."""
    found = []
    for lib in (ut, torch):
        d = lib.distributions
        picks = d.Categorical(lib.tensor([0.3, 0.7], dtype=lib.float64))
        parts = d.Normal(lib.tensor([-1.0, 2.0]).double(), lib.tensor([0.5, 1.0]).double())
        mixture = d.MixtureSameFamily(picks, parts)
        x = lib.tensor([0.0, 1.0]).double()
        found.append([mixture.mean, mixture.variance, mixture.log_prob(x), mixture.cdf(x)])
    for ours, theirs in zip(*found, strict=True):
        close(ours, theirs)
