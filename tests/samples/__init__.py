"""The entries of the op table, one file for each file of `undertow.ops`."""
