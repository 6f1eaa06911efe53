"""What a worker does for the tasks of a reader or writer of another system, such as Spark."""
