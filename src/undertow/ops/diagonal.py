"""Diagonals and triangles: diag, diagonal, tril, triu, block_diag …."""
