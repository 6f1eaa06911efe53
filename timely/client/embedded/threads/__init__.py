"""Workers of one process, each in a thread or all in turn in one."""
