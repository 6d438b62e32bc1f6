"""Functions of single elements: one expression each, of which kernels and derivatives are made."""
