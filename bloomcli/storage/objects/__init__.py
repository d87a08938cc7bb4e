"""Code that all object stores share: the client interface, sources, names and listings.

client.py   the interface to the vendors' SDKs
bounded.py  connections on which answers are bounded in bytes and time
network.py  why a server can't be reached, and errors for answers that no store sends
source.py   an object that is open for reading
content.py  the content of a new object, assembled from pieces
store.py    opens, lists and names objects through a client
writing.py  the steps of writing an object, and what a vendor's client does for them
"""
