"""Google Cloud Storage, through the SDK google-cloud-storage: ``gs://BUCKET/...`` and ``gcs://BUCKET/...``.

The SDK provides the credentials, the endpoint and the retry policy. The requests use the JSON API directly, because
the SDK's methods don't return the size and generation in an answer to a range request.

api.py         sends requests: counts and retries; converts the store's errors to bloomcli's
client.py      reads, lists and deletes objects, and gets their properties
uploads.py     uploads new objects, in one request or in chunks; the CRC32C of two concatenated contents
writing.py     composes objects or uploads them; names of temporary objects, which contain new tails until then
"""
