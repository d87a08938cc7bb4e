"""Amazon S3 and compatible stores, through boto3.

An object is replaced without transferring the bytes that stay the same. The steps of `writing`, and their modules:

     1  sweep: report unfinished uploads to the keys to write                       upload
     2  read the object's properties; refuse to write if some would be lost         properties
     3  begin a multipart upload with the same headers, metadata, tags, ...         upload
     4  divide the pieces into parts while they arrive                              upload
     5  copy kept ranges within the store (UploadPartCopy, on the condition that
        the object hasn't changed since it was read), and upload the other parts    upload
     6  verify the new object from the content of its parts                         objects.content
     7  find out, once per endpoint, whether it honours preconditions               writing
     8  complete the upload on the condition that the object hasn't changed, or
        doesn't exist; otherwise abort the upload                                   upload
     9  read the object's tail and compare it                                       upload

An object without a range large enough for a part is put in one request, on the same condition. If the answer to the
last request is lost or an error, `upload` reads the object to find out whether it was written.

The other modules: `client` (boto3's client, its settings, and the requests of all object stores), `errors`. The
store is in `bloomcli.storage.remote_stores`.
"""
