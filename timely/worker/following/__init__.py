"""Workers that follow a cluster at work, to take its place."""
