"""Where a graph is dense, and how: cores, triangles, colours, communities, ranks."""
