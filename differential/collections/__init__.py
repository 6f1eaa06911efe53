"""Collections: what users write queries with. Each file has the operators of one family."""
