"""Products: matmul, bmm, dot, outer, addmm, cross, trace …."""
