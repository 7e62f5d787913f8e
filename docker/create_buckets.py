"""Creates the buckets named as arguments where they are missing, at the store that the AWS_ variables name."""

import sys

import boto3
from botocore.exceptions import ClientError


def main(names: list[str]) -> None:
    """Creates what is missing; fails where a bucket cannot be used."""
    client = boto3.client("s3")
    for name in names:
        try:
            client.create_bucket(Bucket=name)
        except ClientError as error:
            # Both codes are given for one's own bucket, and the second for a stranger's too: the next request tells.
            if error.response["Error"]["Code"] not in ("BucketAlreadyOwnedByYou", "BucketAlreadyExists"):
                raise
        client.head_bucket(Bucket=name)
        print(f"bucket {name} is there", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
