"""Reading and writing by index: x[…], gather, scatter, index_add, masked_fill …."""
