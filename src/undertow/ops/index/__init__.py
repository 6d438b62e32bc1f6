"""Elements by position: reading and writing by index, by mask, along a dimension."""
