"""The commands, one file each: options in, report out. No Click, no printing, no details of a format."""
