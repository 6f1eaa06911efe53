"""What waits for times to be complete: many rows of one time, and times at which keys are looked at again."""
