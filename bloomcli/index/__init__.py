"""The file format of an index of filters: format.md describes its bytes.

    puffin      the container: magic, blobs, footer
    layout      the shape of a column's bits, and the properties that describe it
    tables      the tables of files and of units, as Arrow IPC streams
    ends        the ends of files, which save the request that opens a file
    sizes       the common size of a column's filters
    spool       bitsets in a temporary file, until the common size is known
    bit_windows the bits, in windows: copied from an old index, cleared, set
    reader      opens an index and looks values up
    lookup      looks hashes up in the bits: reads rows or blocks, and ANDs them
    writer      builds an index, or updates one

A unit is a row group that has a column in a type. A slot is the unit's position in the rows of bits.
"""
