"""Filters that engines keep themselves, outside of the structures of Parquet, ORC and Mosaic: one folder per engine.

An engine's folder says where its filters lie (a key of the footer, a file beside the data file, a manifest), decodes
their bits, and names their faults. `base` has what all have in common, and `registry` asks each folder. No other
module knows an engine's layout or its name.
"""
