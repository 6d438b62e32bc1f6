"""Samples for `undertow.ops.joining`."""
