"""Building a dataflow: stages, streams, loops, routes; frozen, it is what every worker installs."""
