"""What to compute, knowing no device: scalar expressions and the special functions built on them."""
