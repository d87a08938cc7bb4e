"""Files in any store: read ranges, list files, replace a file."""
