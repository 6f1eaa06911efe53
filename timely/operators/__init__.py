"""The class of vertices, and the vertices at the rim of every dataflow: inputs, captured outputs, probes."""
