"""A switch of programs that ask for deterministic results, which all results here are."""

__all__ = ["fill_uninitialized_memory"]

# Kept without effect: `empty` gives any values, whatever `use_deterministic_algorithms` says.
fill_uninitialized_memory: bool = True
