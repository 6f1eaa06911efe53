"""On which workers a stage is."""
