"""How workers make ready for a fold of their logs, and the process that does it."""
