"""The functions of the package, one file each: arguments in, the report of a file or of many files out."""
