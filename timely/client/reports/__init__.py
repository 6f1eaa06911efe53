"""Reports of workers on a dataflow, as tables."""
