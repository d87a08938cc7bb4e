"""Paimon Mosaic files: version 1, as released, and version 2, a draft that adds Bloom filters."""
