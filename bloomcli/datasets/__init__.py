"""What runs a dataset's tasks: this machine's processes (``local``), or a Spark cluster (``spark``)."""
