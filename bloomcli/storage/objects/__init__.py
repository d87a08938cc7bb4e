"""Code that all object stores share: the client interface, sources, names and listings.

client.py   the requests that a vendor's SDK makes, as one interface
source.py   an object that is open for reading
content.py  the content of a new object, from its pieces
store.py    opening, listing and names of objects, by a client's requests
whole_object_store.py  a store that uploads an object when its whole content is known
"""
