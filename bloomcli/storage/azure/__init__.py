"""Azure Blob Storage, through the SDK azure-storage-blob: ``az://CONTAINER/...``, ``abfss://CONTAINER@ACCOUNT.../...``.

connection.py  parses URIs; gets accounts, endpoints and credentials from them and from environment variables;
               counts the requests
errors.py      converts the service's errors to bloomcli's
client.py      reads and lists blobs
writing.py     writes a blob as a new list of blocks, kept ones and new ones
"""
