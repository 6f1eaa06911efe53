"""The graph of stages and connectors, and what could result in what along it."""
