"""What torch lets one set of libraries that are not here; kept, and without effect."""
