"""The first rows of a group by an order of its columns: the layout of rows, and the machine."""
