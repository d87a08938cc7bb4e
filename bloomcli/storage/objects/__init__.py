"""What object stores have in common: a client's requests, a source that reads by them, names and listings.

client.py   the requests that a vendor's SDK makes, as one interface
source.py   an object that is open for reading
content.py  the content of a new object, from its pieces
packages.py the error of a store whose package is missing
store.py    the half of a store that follows from a client: reading, listing, names
"""
