"""Matrices: products, factors, solutions, spectra, norms."""
