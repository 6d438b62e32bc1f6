"""Samples for `undertow.ops.statistics`."""
