"""Samples for `undertow.ops.transcendental`."""
