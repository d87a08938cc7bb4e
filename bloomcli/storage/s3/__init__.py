"""Amazon S3 and compatible stores, through boto3.

An object is replaced without transferring the bytes that stay the same. The steps of `replacing`, and their modules:

     1  sweep: report unfinished uploads to the keys to write                       unfinished_uploads
     2  read the object's properties; refuse to write if some would be lost         properties
     3  begin a multipart upload with the same headers, metadata, tags, ...         upload
     4  divide the pieces into parts while they arrive                              parts
     5  copy kept ranges within the store (UploadPartCopy, on the condition that
        the object hasn't changed since it was read), and upload the other parts    upload
     6  verify the new object from the content of its parts                         objects.content
     7  find out, once per endpoint, whether it honours preconditions               preconditions
     8  complete the upload on the condition that the object hasn't changed, or
        doesn't exist; otherwise abort the upload                                   completion
     9  read the object's tail and compare it                                       completion

An object without a range large enough for a part is put in one request, on the same condition. If the answer to the
last request is lost or an error, `completion` reads the object to find out whether it was written.

The other modules: `client` (the requests of all object stores), `session` (boto3's client, its settings, and the
count of its requests), `errors`, `store`.
"""
