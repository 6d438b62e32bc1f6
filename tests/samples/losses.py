"""Samples for `undertow.ops.losses`."""
