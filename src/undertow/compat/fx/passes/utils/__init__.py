"""What passes share: finding a pattern in a graph."""
