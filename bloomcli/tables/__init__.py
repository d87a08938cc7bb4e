"""Tables: lists the data files of a snapshot, and commits new files with other filters in their place."""
