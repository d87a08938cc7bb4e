"""Google Cloud Storage, through the SDK google-cloud-storage: ``gs://BUCKET/...`` and ``gcs://BUCKET/...``.

The SDK provides the credentials, the endpoint and the retry policy. The requests use the JSON API directly, because
the SDK's methods don't return the size and generation in an answer to a range request.

api.py         sends requests: counts and retries
errors.py      converts the store's errors to bloomcli's
client.py      reads, lists and deletes objects, and gets their properties
uploads.py     uploads new objects, in one request or in chunks
checksum.py    the CRC32C of two concatenated contents
temporary.py   names of temporary objects, which contain new tails until they are composed
writing.py     composes objects or uploads them
store.py       the store
"""
