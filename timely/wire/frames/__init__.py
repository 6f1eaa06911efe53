"""How requests, their answers, and tables look as frames of a message."""
