"""Work for the tasks of a reader or writer of another system, such as Spark."""
