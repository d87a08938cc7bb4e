"""Google Cloud Storage, by the SDK google-cloud-storage: ``gs://BUCKET/...`` (and ``gcs://``).

The SDK gives the credentials, the endpoint and the policy of retries. The requests are those of the JSON API, because
the SDK's own methods hide what a reader needs of an answer: the size and the generation with a range.

api.py         requests, counted and retried
errors.py      answers, as errors of bloomcli
client.py      reading, listing, and what the store knows of an object
uploads.py     new objects, in one request or in several
checksum.py    the CRC32C of two contents that follow one another
temporary.py   names of the objects that hold new tails until they are composed
writing.py     composes objects, or writes them anew
store.py       the store
"""
