"""Constraints: which values a parameter, or a sample, may have.

A constraint checks values by `check`, which answers for each event; `constraint_registry` knows how
to get there from values without constraints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.tensor import Tensor
from ..errors import UnsupportedError
from ..ops.create.creation import zeros
from ..ops.shape.joining import cat as _cat
from ..ops.shape.joining import stack as _stack

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """A region of values, whose events have `event_dim` dimensions.

    >>> import undertow as ut
    >>> ut.distributions.constraints.positive.check(ut.tensor([1.0, -1.0]))
    tensor([ True, False])
    """

    is_discrete = False
    event_dim = 0

    def check(self, value: Tensor) -> Tensor:
        """Whether each event of `value` satisfies it."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__[1:] + "()"


class _Dependent(Constraint):
    """A region that depends on other values, so that it cannot be checked by itself."""

    def __init__(self, *, is_discrete: bool = False, event_dim: int = 0) -> None:
        self.is_discrete = is_discrete
        self.event_dim = event_dim

    def __call__(self, *, is_discrete: Any = None, event_dim: Any = None) -> _Dependent:
        return _Dependent(
            is_discrete=self.is_discrete if is_discrete is None else is_discrete,
            event_dim=self.event_dim if event_dim is None else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        raise UnsupportedError("[constraints.dependent] depends on other values: ask an instance")


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint depends on other values."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property that gives the constraint of an instance; of the class, a dependent one."""

    def __init__(
        self,
        fn: Callable[[Any], Any] | None = None,
        *,
        is_discrete: bool = False,
        event_dim: int = 0,
    ) -> None:
        property.__init__(self, fn)
        self.is_discrete = is_discrete
        self.event_dim = event_dim

    def __call__(self, fn: Callable[[Any], Any]) -> _DependentProperty:  # type: ignore[override]
        return _DependentProperty(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


class _IndependentConstraint(Constraint):
    """A constraint whose last batch dimensions belong to the event, all of which must fit."""

    def __init__(self, base_constraint: Any, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return bool(self.base_constraint.is_discrete)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return int(self.base_constraint.event_dim) + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        found: Tensor = self.base_constraint.check(value)
        kept = found.ndim - self.reinterpreted_batch_ndims
        if kept < 0:
            raise ValueError(
                f"[constraints.independent] expects {self.event_dim} dimensions at least, got "
                f"shape {value.shape}"
            )
        return found.reshape(*found.shape[:kept], -1).all(-1)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The constraint of a mixture: that of its components, for each of them."""

    def __init__(self, base_constraint: Any) -> None:
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return bool(self.base_constraint.is_discrete)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return int(self.base_constraint.event_dim)

    def check(self, value: Tensor) -> Tensor:
        at = value.ndim - self.event_dim
        found: Tensor = self.base_constraint.check(value.unsqueeze(at))
        return found.reshape(*value.shape[:at], -1).all(-1)


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Bounded(Constraint):
    """Between bounds: the names of their attributes, in the order of the arguments."""

    bounds: tuple[str, ...] = ()

    def __init__(self, *values: Any, **named: Any) -> None:
        for name, value in {**dict(zip(self.bounds, values, strict=False)), **named}.items():
            setattr(self, name, value)

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={getattr(self, name)}" for name in self.bounds)
        return f"{type(self).__name__[1:]}({said})"


class _IntegerInterval(_Bounded):
    is_discrete = True
    bounds = ("lower_bound", "upper_bound")

    def check(self, value: Any) -> Any:
        inside = (self.lower_bound <= value) & (value <= self.upper_bound)  # type: ignore[attr-defined]
        return (value % 1 == 0) & inside


class _IntegerGreaterThan(_Bounded):
    is_discrete = True
    bounds = ("lower_bound",)

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (value >= self.lower_bound)  # type: ignore[attr-defined]


class _GreaterThan(_Bounded):
    bounds = ("lower_bound",)

    def check(self, value: Any) -> Any:
        return value > self.lower_bound  # type: ignore[attr-defined]


class _GreaterThanEq(_Bounded):
    bounds = ("lower_bound",)

    def check(self, value: Any) -> Any:
        return value >= self.lower_bound  # type: ignore[attr-defined]


class _LessThan(_Bounded):
    bounds = ("upper_bound",)

    def check(self, value: Any) -> Any:
        return value < self.upper_bound  # type: ignore[attr-defined]


class _Interval(_Bounded):
    bounds = ("lower_bound", "upper_bound")

    def check(self, value: Any) -> Any:
        return (self.lower_bound <= value) & (value <= self.upper_bound)  # type: ignore[attr-defined]


class _HalfOpenInterval(_Bounded):
    bounds = ("lower_bound", "upper_bound")

    def check(self, value: Any) -> Any:
        return (self.lower_bound <= value) & (value < self.upper_bound)  # type: ignore[attr-defined]


class _Real(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return value == value  # NaN is none


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).all(-1).all(-1)


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        positive_diagonal = (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)
        return lower_triangular.check(value) & positive_diagonal


class _CorrCholesky(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        from ..dtypes import finfo

        near = finfo(value.dtype).eps * value.shape[-1] * 10
        lengths = (value.square().sum(-1).sqrt() - 1).abs()
        return lower_cholesky.check(value) & (lengths <= near).all(-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        square = value.shape[-1] == value.shape[-2]
        return zeros(value.shape[:-2], device=value.device) == (0 if square else 1)


class _Symmetric(_Square):
    def check(self, value: Tensor) -> Tensor:
        if value.shape[-1] != value.shape[-2]:
            return super().check(value)
        return ((value - value.mT).abs() <= 1e-6 + 1e-5 * value.mT.abs()).all(-1).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        from ..ops.linalg.spectra import eigvalsh

        symmetric_too = super().check(value)
        return symmetric_too & (eigvalsh(value) >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        from ..ops.linalg.triangular import cholesky_ex

        return super().check(value) & (cholesky_ex(value).info == 0)


class _Joined(Constraint):
    """Constraints of parts along a dimension."""

    def __init__(
        self, cseq: Sequence[Any], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        self.cseq = list(cseq)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        self.dim = dim

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return max(int(c.event_dim) for c in self.cseq)


class _Cat(_Joined):
    def check(self, value: Tensor) -> Tensor:
        parts = value.split(self.lengths, self.dim)
        return _cat([c.check(p) for c, p in zip(self.cseq, parts, strict=True)], self.dim)


class _Stack(_Joined):
    def check(self, value: Tensor) -> Tensor:
        parts = value.unbind(self.dim)
        return _stack([c.check(p) for c, p in zip(self.cseq, parts, strict=True)], self.dim)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
