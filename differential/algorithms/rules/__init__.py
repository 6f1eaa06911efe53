"""Rules of Datalog as collections; `datalog.py` says what they are, the other files how they become joins."""
