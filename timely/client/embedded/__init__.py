"""Workers in the caller's own process: taking turns in its thread, or each in a thread of its own."""
