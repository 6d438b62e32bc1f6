"""Every op, defined once: shape and dtype rule, kernel form, derivative, public name."""

from . import (  # noqa: F401
    activation,
    arithmetic,
    comparison,
    composite,
    conversion,
    creation,
    diagonal,
    einsum,
    indexing,
    joining,
    losses,
    matmul,
    movement,
    random,
    reduction,
    sampling,
    scan,
    sort,
    statistics,
    transcendental,
)
