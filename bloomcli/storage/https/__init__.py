"""Plain web servers, by urllib3: ``https://`` and ``http://`` URIs. Their files are read, not changed and not listed.

headers.py     what an answer's headers say: sizes, tags, ranges
session.py     requests, counted and repeated, and proxies
client.py      ranges of a file that has a tag
store.py       the store
"""
