"""How clusters, dataflows and outputs look in a notebook, and the live table of an output."""
