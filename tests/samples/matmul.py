"""Samples for `undertow.ops.matmul`."""
