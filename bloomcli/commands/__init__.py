"""One file a command: options in, report rows out. No Click, no printing, no format's details."""
