"""Runs the tasks of a dataset, by processes of this machine (``local``) or by a Spark cluster (``spark``)."""
