"""Samples for `undertow.ops.sampling`."""
