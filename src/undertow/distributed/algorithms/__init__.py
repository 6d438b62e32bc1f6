"""Ways to combine gradients, at torch's path."""
