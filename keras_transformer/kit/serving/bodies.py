"""Request bodies, which may be compressed.

aiohttp could decompress them itself. But when a body is damaged, its parser ends the connection,
and the requests that follow on it are not answered. It also decompresses the rest of a body that is
rejected as too large.
"""

import zlib

from aiohttp import web

from keras_transformer.support.errors import InputError, require
from keras_transformer.support.fields import shown

BODY = "the body"  # place in errors
ENCODINGS = ("gzip", "deflate")
_BY_FIRST_BYTES = 32 + zlib.MAX_WBITS  # gzip, or zlib's own format for "deflate"


async def read_body(request: web.Request) -> bytes:
    """Reads a body, and decompresses it if its Content-Encoding says so.

    Raises:
        InputError: for an unknown encoding, and for bytes that are not in it.
        web.HTTPRequestEntityTooLarge: for a body larger than the application allows, as sent or
            decompressed.
    """
    body = await request.read()
    encoding = content_encoding(request)
    if encoding is None:
        return body
    rule = f"must be compressed with {' or '.join(ENCODINGS)}, or not at all"
    require(encoding in ENCODINGS, None, rule, shown(encoding), BODY)
    most = request.client_max_size
    decompressor = zlib.decompressobj(_BY_FIRST_BYTES)
    rule = f"must be encoded as its headers declare, in {encoding}"
    try:
        content = decompressor.decompress(body, most + 1)
    except zlib.error as error:
        raise InputError(None, rule, error, BODY) from None
    if len(content) > most:
        raise web.HTTPRequestEntityTooLarge(most)
    is_whole = decompressor.eof and not decompressor.unused_data
    require(is_whole, None, rule, "only part of it, or more", BODY)
    return content


def content_encoding(request: web.Request) -> str | None:
    """Returns how a body is compressed; None if it is not."""
    encoding = request.headers.get("Content-Encoding", "").lower()
    return encoding if encoding not in ("", "identity") else None


def body_size(request: web.Request) -> str:
    """Returns the size, in words, of a body larger than the application allows."""
    length, most = request.content_length, request.client_max_size
    is_sent = length is not None and length > most  # else it is compressed, or comes in chunks
    return f"{length:,} bytes" if is_sent else f"more than {most:,} bytes"
