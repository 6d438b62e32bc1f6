"""Exponentials, logarithms, trigonometry and special functions of elements."""
