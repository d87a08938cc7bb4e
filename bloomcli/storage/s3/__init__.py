"""S3, and stores that speak its protocol, by boto3.

An object is replaced without moving what stays the same. The steps of `replacing`, and the modules that do them:

     1  sweep: report unfinished uploads to the keys that are to be written         unfinished_uploads
     2  read what the object has besides its content; refuse what would be lost     properties
     3  begin a multipart upload, with the same headers, metadata, tags, ...        requests
     4  divide the pieces into parts while they come in                             parts
     5  have the store copy ranges of the object itself (UploadPartCopy, on the
        condition that it is still the one that was read), and upload the others    upload
     6  verify the new object, from its parts' content                              objects.content
     7  find out, once per endpoint, whether it honours preconditions               preconditions
     8  complete the upload on the condition that the object is the one that was
        read, or that there is none; what isn't completed is aborted                completion
     9  read the object's tail and compare it                                       completion

An object without a range that is large enough for a part is put in one request, on the same condition. After an
answer that was lost, or an error, `completion` looks at the object and says what it is.

The rest: `client` (the requests that all object stores have), `session` (boto3's client and its settings, the meter),
`errors`, `store`.
"""
