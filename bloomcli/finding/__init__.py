"""`find` in many files: several files at a time, rows in the files' order, and the report."""
