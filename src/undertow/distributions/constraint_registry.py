"""How to get from numbers without constraints to each region: `biject_to` and `transform_to`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from ..errors import UnsupportedError
from . import constraints, transforms

Factory: TypeAlias = Callable[[Any], transforms.Transform]
F = TypeVar("F", bound=Factory)


class ConstraintRegistry:
    """Factories of transforms, by the class of the constraint that is their codomain.

    >>> import undertow as ut
    >>> d = ut.distributions
    >>> d.transform_to(d.constraints.positive)(ut.tensor(0.0))
    tensor(1.)
    """

    def __init__(self) -> None:
        self._registry: dict[type, Factory] = {}

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Register a factory for the class of a constraint; without one, a decorator."""
        if factory is None:
            return self._registering(constraint)
        return self._registering(constraint)(factory)

    def _registering(self, constraint: Any) -> Callable[[F], F]:
        def register(factory: F) -> F:
            self._registry[constraint if isinstance(constraint, type) else type(constraint)] = (
                factory
            )
            return factory

        return register

    def __call__(self, constraint: Any) -> Any:
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise UnsupportedError(f"[transform_to] no transform leads to {constraint}")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(constraint: Any) -> Callable[[F], F]:
    def register(factory: F) -> F:
        biject_to.register(constraint, factory)
        transform_to.register(constraint, factory)
        return factory

    return register


@_both(constraints.real)
def _to_real(constraint: Any) -> transforms.Transform:
    return transforms.identity_transform


@biject_to._registering(constraints.independent)
def _biject_to_independent(constraint: Any) -> transforms.Transform:
    base = biject_to(constraint.base_constraint)
    return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)


@transform_to._registering(constraints.independent)
def _transform_to_independent(constraint: Any) -> transforms.Transform:
    base = transform_to(constraint.base_constraint)
    return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)


@_both(constraints.positive)
@_both(constraints.nonnegative)
def _to_positive(constraint: Any) -> transforms.Transform:
    bound = constraint.lower_bound
    if isinstance(bound, (int, float)) and bound == 0:
        return transforms.ExpTransform()
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(bound, 1)]
    )


@_both(constraints.less_than)
def _to_less_than(constraint: Any) -> transforms.Transform:
    affine = transforms.AffineTransform(constraint.upper_bound, -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), affine])


@_both(constraints.interval)
@_both(constraints.half_open_interval)
def _to_interval(constraint: Any) -> transforms.Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, (int, float)) and low == 0 and isinstance(high, (int, float)) and high == 1:
        return transforms.SigmoidTransform()
    affine = transforms.AffineTransform(low, high - low)
    return transforms.ComposeTransform([transforms.SigmoidTransform(), affine])


@biject_to._registering(constraints.simplex)
def _biject_to_simplex(constraint: Any) -> transforms.Transform:
    return transforms.StickBreakingTransform()


@transform_to._registering(constraints.simplex)
def _transform_to_simplex(constraint: Any) -> transforms.Transform:
    return transforms.SoftmaxTransform()


@transform_to._registering(constraints.lower_cholesky)
def _to_lower_cholesky(constraint: Any) -> transforms.Transform:
    return transforms.LowerCholeskyTransform()


@transform_to._registering(constraints.positive_definite)
@transform_to._registering(constraints.positive_semidefinite)
def _to_positive_definite(constraint: Any) -> transforms.Transform:
    return transforms.PositiveDefiniteTransform()


@_both(constraints.corr_cholesky)
def _to_corr_cholesky(constraint: Any) -> transforms.Transform:
    return transforms.CorrCholeskyTransform()


@biject_to._registering(constraints.cat)
def _biject_to_cat(constraint: Any) -> transforms.Transform:
    parts = [biject_to(c) for c in constraint.cseq]
    return transforms.CatTransform(parts, constraint.dim, constraint.lengths)


@transform_to._registering(constraints.cat)
def _transform_to_cat(constraint: Any) -> transforms.Transform:
    parts = [transform_to(c) for c in constraint.cseq]
    return transforms.CatTransform(parts, constraint.dim, constraint.lengths)


@biject_to._registering(constraints.stack)
def _biject_to_stack(constraint: Any) -> transforms.Transform:
    return transforms.StackTransform([biject_to(c) for c in constraint.cseq], constraint.dim)


@transform_to._registering(constraints.stack)
def _transform_to_stack(constraint: Any) -> transforms.Transform:
    return transforms.StackTransform([transform_to(c) for c in constraint.cseq], constraint.dim)
