"""Parts of `table_io.py`, at the edge of a dataflow: waiting rows, kept changes, pieces and failures."""
