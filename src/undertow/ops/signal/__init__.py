"""Fourier transforms, windows, spectrograms, slopes of samples."""
