"""The codecs of text files, by libraries that the package does not read or write them with."""

import gzip
import io

import cramjam
import pyarrow as pa
import zstandard

from s3lake.records.encode.formats import FORMATS

TEXT_CODECS = FORMATS["text"].codecs
COMPRESSED = TEXT_CODECS[1:]


def compress(codec: str, text: bytes) -> bytes:
    """Compress a text file as one stream."""
    match codec:
        case "none":
            return text
        case "gzip":
            return gzip.compress(text)
        case "zstd":
            return bytes(pa.compress(text, codec="zstd", asbytes=True))
        case "snappy_framed":
            return bytes(cramjam.snappy.compress(text))
    raise NotImplementedError(codec)


def decompress(codec: str, data: bytes) -> bytes:
    """Read all streams of a text file as one text."""
    match codec:
        case "none":
            return data
        case "gzip":
            return gzip.decompress(data)
        case "zstd":
            return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True).read()
        case "snappy_framed":
            return bytes(cramjam.snappy.decompress(data))  # checks the length and the sum of each chunk
    raise NotImplementedError(codec)
