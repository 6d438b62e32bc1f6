"""Tensor, Op, Node, dispatch and the modes: the one door between ops and backends."""
