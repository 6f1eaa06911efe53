"""`python -m timely.metrics`: what a running cluster counts, as Prometheus reads it."""
