"""The first rows of a group by an order of its columns: how rows are laid out for that, and the vertex."""
