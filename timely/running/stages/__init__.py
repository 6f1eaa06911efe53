"""What a dataflow consists of on a worker: runners of stages, connectors between them, compiled loops."""
