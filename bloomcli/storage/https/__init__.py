"""Reads files of web servers, by ``https://`` and ``http://`` URIs, with urllib3. It neither writes nor lists files.

client.py      sends requests, and reads ranges of a file on the condition of its tag
store.py       the store
"""
