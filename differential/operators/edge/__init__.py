"""What readers outside of a dataflow are given of its outputs, beside `table_io.py`."""
