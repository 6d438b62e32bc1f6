"""Samples for `undertow.ops.einsum`."""
