"""A key management service that speaks AWS KMS's protocol, for Iceberg's own client. It wraps keys by AES-GCM.

https://docs.aws.amazon.com/kms/latest/APIReference/API_Operations.html: Encrypt and Decrypt.
"""

from __future__ import annotations

import base64
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cryptography.hazmat.primitives.ciphers.aead import AESGCM


@contextmanager
def served() -> Iterator[str]:
    """The URL of a service with one master key, which every key id names."""
    master = AESGCM(os.urandom(16))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            name = asked["KeyId"].encode()
            if self.headers["X-Amz-Target"].endswith("Encrypt"):
                nonce = os.urandom(12)
                result = "CiphertextBlob", nonce + master.encrypt(nonce, base64.b64decode(asked["Plaintext"]), name)
            else:
                wrapped = base64.b64decode(asked["CiphertextBlob"])
                result = "Plaintext", master.decrypt(wrapped[:12], wrapped[12:], name)
            answer = {"KeyId": asked["KeyId"], result[0]: base64.b64encode(result[1]).decode()}
            data = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
