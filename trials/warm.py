"""For the process that commands are forked from: S3 as botocore describes it, which each of them would read anew."""

import functools
import gc
from typing import Any

import boto3
from botocore.loaders import JSONFileLoader

_read = functools.cache(JSONFileLoader().load_file)


def _remembered(_: JSONFileLoader, path: str) -> Any:
    return _read(path)


JSONFileLoader.load_file = _remembered
boto3.client("s3", region_name="us-east-1")
gc.freeze()  # what a collection touches is copied
