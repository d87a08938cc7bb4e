"""Paimon's filters of columns, in an index file beside the data file or in the table's manifest.

`index_file` has the layout of an index, `values` the hashes, `table` the manifests; `filters` finds the filters of a
file, and `rewriting` writes those of an index file again.
"""

from bloomcli.engine_filters.paimon.filters import filters_of as filters_of
from bloomcli.engine_filters.paimon.rewriting import rewrite_of as rewrite_of
