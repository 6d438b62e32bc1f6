"""Samples for `undertow.ops.diagonal`."""
