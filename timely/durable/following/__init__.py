"""Reading the logs of a cluster that is at work, to take its place or to copy its store."""
