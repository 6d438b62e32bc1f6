"""An older name of `library`'s functions."""

from .library import get_ctx, impl_abstract, register_fake

__all__ = ["get_ctx", "impl_abstract", "register_fake"]
