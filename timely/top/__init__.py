"""`python -m timely.top`: a running cluster in a terminal, as `top` shows processes."""
