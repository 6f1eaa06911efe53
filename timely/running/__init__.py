"""Running dataflows on one worker: steps, vertices and their rights, messages, progress, checks."""
