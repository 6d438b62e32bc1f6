"""Comparison, logic, bits and choice: eq, where, logical_and, isnan …."""
