"""Programs that run on the workers themselves, beside clients."""
