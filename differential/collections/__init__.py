"""Collections, with which users write queries. Each file has the operators of one family."""
