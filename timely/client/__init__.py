"""A cluster as its users see it: connections, dataflows, inputs, outputs; also without any process."""
