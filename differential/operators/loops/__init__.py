"""What loops have of their own: rows that come in by priority, what is said of one without end."""
