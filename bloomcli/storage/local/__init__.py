"""The local file system: atomic replacement, temporary files, Hadoop checksum files."""
