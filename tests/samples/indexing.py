"""Samples for `undertow.ops.indexing`."""
