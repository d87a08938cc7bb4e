"""`index build` and `index update`: an engine reads the files, and one index takes their filters."""
