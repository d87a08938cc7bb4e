"""Reads files of web servers, by ``https://`` and ``http://`` URIs, with urllib3. It neither writes nor lists files.

headers.py     parses an answer's headers: tags, times, request ids
session.py     sends requests: counts, retries, proxies
client.py      reads ranges of a file, on the condition of its tag
store.py       the store
"""
