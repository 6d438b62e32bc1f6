"""Samples for `undertow.ops.random`."""
