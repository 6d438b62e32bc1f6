"""Samples for `undertow.ops.scan`."""
