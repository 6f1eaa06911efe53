"""What a client of worker processes does for each of its threads."""
