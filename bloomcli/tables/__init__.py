"""Tables: the data files of a snapshot, and the commit that replaces them by files with other filters."""
