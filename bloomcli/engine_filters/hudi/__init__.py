"""Hudi's filters of record keys, in the footers of Parquet and ORC base files.

`layout` decodes a filter's bytes, `footer` finds it in a file.
"""

from bloomcli.engine_filters.hudi.footer import filters_of as filters_of
