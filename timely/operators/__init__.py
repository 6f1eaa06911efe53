"""The vertices at the rim of a dataflow: inputs, captured outputs, probes."""
