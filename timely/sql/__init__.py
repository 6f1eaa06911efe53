"""`python -m timely.sql`: a prompt for SQL against a cluster."""
