"""Ways between nodes: whether there are any, and how long they are."""
