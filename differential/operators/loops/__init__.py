"""Parts that only loops need: rows that come in by priority, and the error text of a loop without end."""
