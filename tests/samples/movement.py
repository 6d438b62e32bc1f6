"""Samples for `undertow.ops.movement`."""
