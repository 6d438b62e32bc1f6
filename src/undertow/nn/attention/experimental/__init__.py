"""What torch tries out in attention; only the names are here."""
