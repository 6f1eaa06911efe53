"""`python -m progress.check FILE:NAME`: explores a scenario that a user's file defines (`command.py`)."""
