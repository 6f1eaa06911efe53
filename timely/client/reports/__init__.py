"""What workers report of a dataflow, as tables."""
