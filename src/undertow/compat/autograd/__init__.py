"""Modules of `autograd` that stand in higher rooms."""
