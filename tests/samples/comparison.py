"""Samples for `undertow.ops.comparison`."""
