"""`python -m timely.why`: what holds an epoch that is not complete."""
