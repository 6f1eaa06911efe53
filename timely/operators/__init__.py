"""What a vertex is, and those at the rim of every dataflow: inputs, captured outputs, probes."""
