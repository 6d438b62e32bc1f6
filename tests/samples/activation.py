"""Samples for `undertow.ops.activation`."""
