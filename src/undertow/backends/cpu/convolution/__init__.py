"""Convolutions: eight ways, and which of them is for which."""
