"""What `table_io.py` uses to serve inputs and outputs of a dataflow: kept rows, changes, pieces and
failures.
"""
