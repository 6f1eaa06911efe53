"""How dense is a graph, and where: cores, triangles, colours, communities, ranks."""
