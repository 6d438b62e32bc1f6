"""Samples for `undertow.ops.sort`."""
