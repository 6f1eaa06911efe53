"""Building a dataflow: builders, stages, streams, loops, routes; frozen, it is what every worker installs."""
