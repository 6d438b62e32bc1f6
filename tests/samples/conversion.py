"""Samples for `undertow.ops.conversion`."""
