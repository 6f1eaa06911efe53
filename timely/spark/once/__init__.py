"""What makes a run that is repeated count once: the rows of a commit, and those that a store has already."""
