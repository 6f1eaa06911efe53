"""Linear steps (select, filter, map, concat, negate, delay), fused into passes that run on connectors."""
