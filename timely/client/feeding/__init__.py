"""How rows come in from a client: in parts, under names, and into epochs of one input."""
