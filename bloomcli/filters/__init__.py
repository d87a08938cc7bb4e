"""The filters themselves, apart from any file: bits, rates, sizes."""
