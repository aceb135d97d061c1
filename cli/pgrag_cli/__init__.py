"""The command ``pgrag``: a file a command, and no SQL."""
