"""`find` in many files: several at a time, what is found in the order of the files, and the report."""
