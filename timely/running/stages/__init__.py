"""The parts of a dataflow on a worker: runners of stages, connectors between them, compiled loops."""
