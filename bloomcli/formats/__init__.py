"""The file formats: one folder each, with the interface of `formats.base`."""
