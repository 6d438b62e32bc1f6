"""What to compute, knowing no device: scalar expressions, and special functions made of them."""
