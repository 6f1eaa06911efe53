"""What must hold of progress tracking, as predicates over the states of workers."""
