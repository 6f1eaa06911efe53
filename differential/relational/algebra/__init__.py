"""Relations as data: those of a SQL text, or of the plan of another system."""
