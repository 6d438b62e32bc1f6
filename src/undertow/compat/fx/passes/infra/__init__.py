"""Passes as objects, and several of them one after the other."""
