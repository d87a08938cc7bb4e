"""The file format of an index of filters: docs/index-format.md describes it.

    puffin      the container: magic, blobs, footer
    layout      the shape of a column's bits, and the properties that describe it
    tables      the tables of files and of units, as Arrow IPC streams
    ends        the ends of files, which save the request that opens a file
    sizes       the common size of a column's filters
    spool       bitsets that wait for the common size, in a temporary file
    bit_windows  windows of the bits: copied from an old index, cleared, set
    reader      opens an index and looks values up
    lookup      hashes in the bits: which rows and blocks are read, and what they answer
    writer      builds an index, or updates one
    freshness   whether listed files are those that were indexed

A unit is a row group that has a column in a type. A slot is its place in the rows of bits.
"""
