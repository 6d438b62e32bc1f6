"""Every op, defined once: shape and dtype rule, kernel form, derivative, public name."""

from . import arithmetic, creation, movement, reduction
