"""Large memory of workers in files: the folder and the budget, and one block of memory in a file."""
