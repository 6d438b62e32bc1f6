"""Sorting and searching: sort, topk, unique, searchsorted …."""
