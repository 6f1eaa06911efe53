"""DataFrames of changes, as a database's log or a table's history has them, become rows of an input."""
