"""Samples for `undertow.ops.composite`."""
