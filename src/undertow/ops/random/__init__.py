"""Random numbers of every distribution."""
