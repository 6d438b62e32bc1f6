"""`Transform`: a function of variables with its inverse and Jacobian; compositions, shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.tensor import Tensor
from ..errors import ArgumentError, ShapeError, UnsupportedError
from ..ops.create.creation import zeros_like
from ..shapes import Size
from . import constraints
from .utils import broadcast_all, sum_rightmost


class Transform:
    """A function from a `domain` to a `codomain`; `t.inv` is its inverse.

    A subclass has `_call`, `_inverse` and `log_abs_det_jacobian`. `cache_size=1` keeps the last
    value, so that an inverse gives the very tensor that it came from.

    >>> import undertow as ut
    >>> t = ut.distributions.ExpTransform()
    >>> t(ut.tensor(0.0)), t.inv(ut.tensor(1.0)), t.log_abs_det_jacobian(ut.tensor(2.0), None)
    (tensor(1.), tensor(0.), tensor(2.))
    """

    bijective = False
    domain: Any = constraints.real
    codomain: Any = constraints.real

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ArgumentError(f"[{type(self).__name__}] cache_size is 0 or 1, got {cache_size}")
        self._cache_size = cache_size
        self._kept: tuple[Any, Any] = (None, None)

    @property
    def event_dim(self) -> int:
        """How many dimensions one value has, before and after."""
        if self.domain.event_dim == self.codomain.event_dim:
            return int(self.domain.event_dim)
        raise ArgumentError(
            f"[{type(self).__name__}] goes from {self.domain.event_dim} dimensions to "
            f"{self.codomain.event_dim}; ask domain.event_dim or codomain.event_dim"
        )

    @property
    def inv(self) -> Transform:
        """The inverse."""
        return _Inverse(self)

    @property
    def sign(self) -> Any:
        """1 if it is increasing, -1 if it is decreasing."""
        raise UnsupportedError(f"[{type(self).__name__}] is not monotonic")

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same transform that keeps so many values."""
        import copy

        new = copy.copy(self)
        new._cache_size, new._kept = cache_size, (None, None)
        return new

    def __call__(self, x: Tensor) -> Tensor:
        if self._cache_size and x is self._kept[0]:
            return self._kept[1]
        y = self._call(x)
        if self._cache_size:
            self._kept = (x, y)
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        if self._cache_size and y is self._kept[1]:
            return self._kept[0]
        x = self._inverse(y)
        if self._cache_size:
            self._kept = (x, y)
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        """log |dy/dx| at `x`, where `y` is the transformed `x`."""
        raise NotImplementedError

    def forward_shape(self, shape: Any) -> Size:
        """The shape of what it makes of a tensor of a shape."""
        return Size(shape)

    def inverse_shape(self, shape: Any) -> Size:
        """The shape of what its inverse makes of a tensor of a shape."""
        return Size(shape)

    def _values(self) -> tuple[Any, ...]:
        """What two equal transforms of a class have in common."""
        return ()

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and all(
            _same(a, b) for a, b in zip(self._values(), other._values(), strict=True)
        )

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        a, b = broadcast_all(a, b)
        return bool((a == b).all())
    return bool(a == b)


class _Inverse(Transform):
    """The inverse of a transform."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(transform._cache_size)
        self._inv = transform

    @property
    def domain(self) -> Any:
        return self._inv.codomain

    @property
    def codomain(self) -> Any:
        return self._inv.domain

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return self._inv.bijective

    @property
    def sign(self) -> Any:
        return self._inv.sign

    @property
    def inv(self) -> Transform:
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Any:
        return self._inv.with_cache(cache_size).inv

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def _inv_call(self, y: Tensor) -> Tensor:
        return self._inv(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Size:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Size:
        return self._inv.forward_shape(shape)

    def _values(self) -> tuple[Any, ...]:
        return (self._inv,)

    def __repr__(self) -> str:
        return f"_Inverse({self._inv!r})"


class ComposeTransform(Transform):
    """Transforms one after the other, the first of the list first.

    >>> import undertow as ut
    >>> d = ut.distributions
    >>> d.ComposeTransform([d.AffineTransform(1.0, 2.0), d.ExpTransform()])(ut.tensor(-0.5))
    tensor(1.)
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [p.with_cache(cache_size) for p in parts] if cache_size else list(parts)
        self._inverse_of: ComposeTransform | None = None

    @property
    def domain(self) -> Any:
        if not self.parts:
            return constraints.real
        found = self.parts[0].domain
        event_dim = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            event_dim += part.domain.event_dim - part.codomain.event_dim
            event_dim = max(event_dim, part.domain.event_dim)
        more = event_dim - found.event_dim
        return constraints.independent(found, more) if more > 0 else found

    @property
    def codomain(self) -> Any:
        if not self.parts:
            return constraints.real
        found = self.parts[-1].codomain
        event_dim = self.parts[0].domain.event_dim
        for part in self.parts:
            event_dim += part.codomain.event_dim - part.domain.event_dim
            event_dim = max(event_dim, part.codomain.event_dim)
        more = event_dim - found.event_dim
        return constraints.independent(found, more) if more > 0 else found

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(p.bijective for p in self.parts)

    @property
    def sign(self) -> Any:
        sign: Any = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    @property
    def inv(self) -> Transform:
        if self._inverse_of is not None:
            return self._inverse_of
        inverse = ComposeTransform([p.inv for p in reversed(self.parts)])
        inverse._inverse_of = self
        return inverse

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return ComposeTransform(self.parts, cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        if not self.parts:
            return zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        event_dim = self.domain.event_dim
        total: Any = 0
        for part, before, after in zip(self.parts, values, values[1:], strict=False):
            found = part.log_abs_det_jacobian(before, after)
            total = total + sum_rightmost(found, event_dim - part.domain.event_dim)
            event_dim += part.codomain.event_dim - part.domain.event_dim
        result: Tensor = total
        return result

    def forward_shape(self, shape: Any) -> Size:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return Size(shape)

    def inverse_shape(self, shape: Any) -> Size:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return Size(shape)

    def _values(self) -> tuple[Any, ...]:
        return (self.parts,)

    def __repr__(self) -> str:
        return f"ComposeTransform({self.parts})"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose last batch dimensions belong to the event: their Jacobians are summed.

    >>> import undertow as ut
    >>> t = ut.distributions.IndependentTransform(ut.distributions.ExpTransform(), 1)
    >>> x = ut.tensor([1.0, 2.0])
    >>> t.log_abs_det_jacobian(x, t(x))  # one number for the vector: 1 + 2
    tensor(3.)
    """

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def domain(self) -> Any:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @property
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Tensor) -> Tensor:
        if x.ndim < self.domain.event_dim:
            raise ShapeError(
                f"[IndependentTransform] expects {self.domain.event_dim} dimensions at least, got "
                f"shape {x.shape}"
            )
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        found = self.base_transform.log_abs_det_jacobian(x, y)
        total: Tensor = sum_rightmost(found, self.reinterpreted_batch_ndims)
        return total

    def forward_shape(self, shape: Any) -> Size:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Size:
        return self.base_transform.inverse_shape(shape)


class ReshapeTransform(Transform):
    """Events of one shape as events of another one.

    >>> import undertow as ut
    >>> t = ut.distributions.ReshapeTransform((4,), (2, 2))
    >>> t(ut.arange(4.0))
    tensor([[0., 1.],
            [2., 3.]])
    """

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ShapeError(
                f"[ReshapeTransform] shapes {self.in_shape} and {self.out_shape} have different "
                "numbers of elements"
            )

    @property
    def domain(self) -> Any:
        return constraints.independent(constraints.real, len(self.in_shape))

    @property
    def codomain(self) -> Any:
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        found: Tensor = x.new_zeros(x.shape[: x.ndim - len(self.in_shape)])
        return found

    def forward_shape(self, shape: Any) -> Size:
        return _exchanged(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Size:
        return _exchanged(shape, self.out_shape, self.in_shape)

    def _values(self) -> tuple[Any, ...]:
        return self.in_shape, self.out_shape


def _exchanged(shape: Any, end: Size, other: Size) -> Size:
    cut = len(shape) - len(end)
    if cut < 0 or tuple(shape[cut:]) != tuple(end):
        raise ShapeError(f"[ReshapeTransform] shape {tuple(shape)} does not end with {end}")
    return Size(tuple(shape[:cut])) + other
