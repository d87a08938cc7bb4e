"""The file format of an index of filters: format.md describes its bytes.

    puffin      the container: magic, blobs, footer
    layout      the shape of a column's bits, and the properties that describe it
    tables      the tables of files and of units, as Arrow IPC streams
    ends        the ends of files, which save the request that opens a file
    filters     the filters of new units, in a temporary file until their common size is known
    bits        the transposed bits: reads them, looks hashes up, makes them for a new index
    reader      opens an index and looks values up
    writer      builds an index, or updates one

A unit is a row group that has a column in a type. A slot is the unit's position in the rows of bits.
"""
