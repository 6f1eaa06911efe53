"""What only checks a running worker: nothing here is on the way of a row unless progress is checked."""
