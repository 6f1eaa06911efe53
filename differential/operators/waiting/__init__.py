"""Rows that wait until their times are complete, and times at which keys are to be looked at again."""
