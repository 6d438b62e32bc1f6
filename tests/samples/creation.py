"""Samples for `undertow.ops.creation`."""
