"""Running dataflows on one worker: its step, vertices and their rights, messages, progress, checks."""
