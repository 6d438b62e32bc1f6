"""`Distribution`, which every distribution inherits: shapes, checks, and how to expand."""

from __future__ import annotations

from typing import Any, ClassVar

from ..core.modes import no_grad
from ..core.notebook import as_html
from ..core.tensor import Tensor
from ..errors import ArgumentError, UnsupportedError
from ..shapes import Size
from .constraints import is_dependent
from .utils import broadcast_all, lazy_property


class Distribution:
    """A probability distribution: a batch of them, each of events of one shape.

    A subclass says in `arg_constraints` what its parameters are and may be, and in `event_dims` how
    many dimensions of a parameter belong to the event, if any.

    >>> import undertow as ut
    >>> weather = ut.distributions.Bernoulli(ut.tensor([0.1, 0.5, 0.9]))
    >>> weather.batch_shape, weather.event_shape, weather.sample((4,)).shape
    ((3,), (), (4, 3))
    >>> weather.log_prob(ut.ones(3)).exp()
    tensor([0.1000, 0.5000, 0.9000])
    >>> isinstance(weather, ut.distributions.Distribution)
    True
    """

    has_rsample = False
    has_enumerate_support = False
    arg_constraints: Any = {}
    event_dims: ClassVar[dict[str, int]] = {}
    support: Any = None
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Switch the checks of parameters and values on or off for all that are made from now on.

        >>> import undertow as ut
        >>> ut.distributions.Distribution.set_default_validate_args(True)
        """
        if value not in (True, False):
            raise ArgumentError(f"[set_default_validate_args] expects True or False, got {value!r}")
        Distribution._validate_args = value

    def __init__(
        self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _check_parameters(self) -> None:
        for name, constraint in self.arg_constraints.items():
            lazy = isinstance(getattr(type(self), name, None), lazy_property)
            if is_dependent(constraint) or (name not in self.__dict__ and lazy):
                continue
            value = getattr(self, name)
            if not bool(constraint.check(value.detach()).all()):
                raise ArgumentError(
                    f"[{type(self).__name__}] parameter {name}, of shape {tuple(value.shape)}, "
                    f"must satisfy {constraint}, got values {_brief(value)}"
                )

    def _parameters(self, **given: Any) -> Size:
        """Broadcast and keep parameters that have no event dimensions; their common shape."""
        values = broadcast_all(*given.values())
        for name, value in zip(given, values, strict=True):
            setattr(self, name, value)
        return Size(values[0].shape)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with its parameters expanded to a larger batch."""
        new: Any = object.__new__(type(self)) if _instance is None else _instance
        shape = Size(batch_shape)
        for name, value in self.__dict__.items():
            if name in self.arg_constraints or name in self.event_dims:
                own = self.event_dims.get(name, 0)
                new.__dict__[name] = value.expand(shape + value.shape[value.ndim - own :])
            elif isinstance(value, Distribution):
                own = len(value.batch_shape) - len(self._batch_shape)
                inner = value.batch_shape[len(value.batch_shape) - own :] if own > 0 else ()
                new.__dict__[name] = value.expand(shape + inner)
            elif not isinstance(getattr(type(self), name, None), lazy_property):
                new.__dict__[name] = value
        new._batch_shape = shape
        return new

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one event."""
        return self._event_shape

    @property
    def mean(self) -> Tensor:
        """The expected value."""
        raise self._lacks("a mean")

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        raise self._lacks("a mode")

    @property
    def variance(self) -> Tensor:
        """The expected squared deviation from the mean."""
        raise self._lacks("a variance")

    @property
    def stddev(self) -> Tensor:
        """The square root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Values drawn at random, without history."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Values drawn at random, which are differentiable functions of the parameters."""
        raise self._lacks("samples that can be differentiated; use sample()")

    def sample_n(self, n: int) -> Tensor:
        """`sample((n,))`, an old name."""
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability, at `value`."""
        raise self._lacks("a log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most `value`."""
        raise self._lacks("a cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile: where the cdf is `value`."""
        raise self._lacks("an icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values that a discrete distribution can have, along a new first dimension."""
        raise self._lacks("a support that can be enumerated")

    def entropy(self) -> Tensor:
        """The expected negative logarithm of the density."""
        raise self._lacks("an entropy")

    def perplexity(self) -> Tensor:
        """exp of the entropy."""
        return self.entropy().exp()

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """An empty object for an `expand` that a subclass writes itself, as torch's ask for it."""
        if _instance is not None:
            return _instance
        if type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise UnsupportedError(
                f"[expand] {type(self).__name__} has an __init__ of its own, other than "
                f"{cls.__name__}'s; give it an expand of its own, too"
            )
        return object.__new__(type(self))

    def _lacks(self, what: str) -> UnsupportedError:
        return UnsupportedError(f"[{type(self).__name__}] has no {what.removeprefix('a ')}")

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size(tuple(sample_shape)) + self._batch_shape + self._event_shape

    def _validate_sample(self, value: Any) -> None:
        name = type(self).__name__
        if not isinstance(value, Tensor):
            raise ArgumentError(f"[{name}] the value must be a Tensor, got {type(value).__name__}")
        own = len(self._event_shape)
        if value.shape[value.ndim - own :] != tuple(self._event_shape):
            raise ArgumentError(
                f"[{name}] the last sizes of a value must be the event shape {self._event_shape}, "
                f"got {value.shape}"
            )
        whole = self._batch_shape + self._event_shape
        for a, b in zip(reversed(value.shape), reversed(whole), strict=False):
            if a not in (1, b) and b != 1:
                raise ArgumentError(
                    f"[{name}] a value of shape {value.shape} does not broadcast with batch shape "
                    f"{self._batch_shape} and event shape {self._event_shape}"
                )
        support = self.support
        if support is not None and not bool(support.check(value.detach()).all()):
            raise ArgumentError(
                f"[{name}] a value lies outside of the support {support}: {_brief(value)}"
            )

    def _checked(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return value

    def __repr__(self) -> str:
        parts = []
        for name in self.arg_constraints:
            plain = isinstance(getattr(type(self), name, None), property)
            value = getattr(self, name) if plain else self.__dict__.get(name)
            if value is not None:
                said = value.item() if value.numel() == 1 else value.shape
                parts.append(f"{name}: {said}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def _repr_html_(self) -> str:
        shapes = f"batch {tuple(self.batch_shape)}, event {tuple(self.event_shape)}"
        return as_html(f"{type(self).__name__}, {shapes}", repr(self))


def _brief(value: Tensor) -> str:
    return f"from {float(value.min())} to {float(value.max())}" if value.numel() else "none"
