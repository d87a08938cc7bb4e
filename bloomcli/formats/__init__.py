"""The file formats: one folder each, behind `formats.base`."""
