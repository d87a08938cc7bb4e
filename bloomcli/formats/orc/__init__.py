"""ORC: Kirsch-Mitzenmacher filters in BLOOM_FILTER and BLOOM_FILTER_UTF8 streams, one a row group of a stripe."""
