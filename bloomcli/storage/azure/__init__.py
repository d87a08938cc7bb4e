"""Azure's blobs, by the SDK azure-storage-blob: ``az://CONTAINER/...`` and ``abfss://CONTAINER@ACCOUNT.../...``.

connection.py  accounts, endpoints and credentials, from a URI and the usual variables
transport.py   counts the requests
errors.py      the service's error codes, as errors of bloomcli
client.py      reading and listing
blocks.py      which blocks of a blob a new content keeps, and which bytes are uploaded
writing.py     writes a blob as a new list of blocks
store.py       the store

Nothing but store.py imports the SDK when it is imported itself, or is imported only by what does: see `store`.
"""
