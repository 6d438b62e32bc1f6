"""Matrix products: tiles, packing, the loops around them, and what is built on them."""
