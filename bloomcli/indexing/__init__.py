"""`index build` and `index update`: the files of a lake go through an engine, and what they give into one index."""
