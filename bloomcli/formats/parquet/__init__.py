"""Parquet files, and files with a single Parquet filter.

Each module imports only modules that stand above it:

    limits          ceilings, each with its reason
    spec            Thrift structures by the IDL: walks of fields, with checks, the encoding of new ones, and trees
    encryption      modules: encrypted and decrypted; how a file is encrypted, and its keys: given, or wrapped
    schema          leaf columns, their types, the paths of shredded VARIANTs, and the names of a table
    statistics      which bounds and counts are believed; which bounds a filter must have; boxes of geometries
    footer          the footer: row groups, metadata of column chunks, byte ranges, extensions
    codecs          decompression of pages, at once or in windows
    bloom_filter    headers of filters, which filters can be used, and reading them
    pages           page headers, levels, and the bytes of a page's values
    encodings       a page's values to hashes, in every encoding
    values          a column chunk's values to hashes, for filters
    page_index      the column index and the offset index; pages that can have a value; lists of pages
    decryption      encrypted files: the footer, and a view with every module in plain text
    page_decoder    pages to Arrow arrays, for `find`
    measured        what a chunk's statistics and page index should say, by its values
    proof           findings where they say something else, also of the order of rows, for `validate --deep`
    records         the rows that `find` returns, and the plan of the reads from a store
    lookups         values to the hashes that are looked up
    dictionary      lookups in a chunk's dictionary
    describe        the facts of a filter, and of a column over all row groups
    check           faults of filters and metadata; `validate --deep`
    sampling        row groups and their values for `advise`
    index_input     bits for an index of many files
    splice          edits of a footer, and the new file, also of an encrypted one
    plan            add, remove and fold
    repair          statistics and page indexes as they should be, and the plan that puts them in place
    row_lineage     the two columns of Iceberg's row lineage
    search          the search for values, in a file and in the filters of many files like it
    file            a file with all of these; a filter alone in a file
    format          the format's record
"""
