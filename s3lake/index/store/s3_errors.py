"""boto3's exceptions as s3lake's: an expected status, no answer, or a refusal with its remedy."""

import re
from collections.abc import Mapping, Sequence, Set
from typing import Any

from s3lake.errors import StoreDeniedError
from s3lake.text.masking import mask_secrets

# An error can come inside a 200 (Complete) or without a body (HEAD): its code is more exact than its status, if it has
# one.
_STATUS = {"PreconditionFailed": 412, "ConditionalRequestConflict": 409}
_AGAIN = {
    *("SlowDown", "InternalError", "ServiceUnavailable", "RequestTimeout", "Throttling", "ThrottlingException"),
    *("OperationAborted", "ConditionalRequestConflict", "IncompleteBody"),
    "409",  # of a HEAD, which has no body that names one of these
}
_REMEDIES = {
    "NoSuchBucket": "create the bucket, or correct its name or s3.endpoint_url",
    "NotImplemented": "use a store that has this operation; without conditional writes, set exactly_once: false; what "
    "s3.objects asks of it and it has not, take out",
    "InvalidStorageClass": "write a storage class that the store has as s3.objects.storage_class, or take it out",
    "KMS.NotFoundException": "correct s3.objects.kms_key_id: the key has to be in the bucket's region",
    "KMS.DisabledException": "enable the key of s3.objects.kms_key_id",
    "AccessControlListNotSupported": "take s3.objects.acl out, or let the bucket have ACLs (object ownership)",
    "RequestTimeTooSkewed": "set this machine's clock",
    **dict.fromkeys(
        ("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired"),
        "correct s3.credentials (or, with `default`, the environment, profile or role that boto3 finds)",
    ),
    **dict.fromkeys(
        ("PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "301", "307"),
        "set s3.region and s3.endpoint_url to the region and the address of the bucket",
    ),
}
_PERMISSIONS = {
    # A store answers 403 instead of 404 for a missing object to whoever may not list the bucket.
    "GetObject": "s3:GetObject and s3:ListBucket",
    "HeadObject": "s3:GetObject and s3:ListBucket",
    "DeleteObject": "s3:DeleteObject",
    "ListObjectsV2": "s3:ListBucket",
    "ListMultipartUploads": "s3:ListBucketMultipartUploads",
    "AbortMultipartUpload": "s3:AbortMultipartUpload",
    "PutObjectTagging": "s3:PutObjectTagging",
}


class RetryableError(Exception):
    """The store did not answer, or asked to try again."""


class NotReachedError(RetryableError):
    """There was no connection."""


class NoResponseError(RetryableError):
    """The request was sent, and no response came."""


class ExpectedStatus(Exception):
    """The store answered with a status that the caller expects."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


def to_store_error(
    error: Exception, secrets: Sequence[str], what: str, operation: str, expected: Set[int | str]
) -> Exception | None:
    """Return the exception of s3lake for one of boto3. Return None if it is not boto3's."""
    from botocore import exceptions
    from botocore.parsers import ResponseParserError
    from urllib3.exceptions import HTTPError

    if isinstance(error, exceptions.ClientError):
        return _translate_refusal(error.response, secrets, what, operation, expected)
    message = f"{type(error).__name__}: {mask_secrets(str(error), secrets).rstrip('.')}"
    if "Invalid header value" in message:
        return StoreDeniedError(
            f"{what} cannot be asked: {message}. To go on: take the line break out of the access key or the session "
            "token (of s3.credentials, a variable AWS_… or a file of AWS), or out of s3.objects."
        )
    # A wrong certificate or protocol stays wrong.
    if isinstance(error, exceptions.SSLError) and re.search("CERTIFICATE_VERIFY_FAILED|WRONG_VERSION_NUMBER", message):
        return StoreDeniedError(
            f"{what} cannot be asked: {message}. To go on: correct s3.endpoint_url, or give s3.ca_file, the "
            "certificates of those who signed the store's."
        )
    if isinstance(
        error,
        exceptions.HTTPClientError
        | exceptions.ConnectionError
        | exceptions.IncompleteReadError
        | exceptions.CredentialRetrievalError
        | exceptions.MetadataRetrievalError
        | ResponseParserError
        | HTTPError,
    ):
        if isinstance(error, exceptions.EndpointConnectionError | exceptions.ConnectTimeoutError):
            return NotReachedError(message)
        return (NoResponseError if isinstance(error, exceptions.ReadTimeoutError) else RetryableError)(message)
    if isinstance(error, exceptions.MissingDependencyException):
        return StoreDeniedError(
            f"{what} cannot be asked: {message}. To go on: do that, or correct s3.objects.checksum."
        )
    # A file with a token, or a program that prints credentials, which a variable or a profile of AWS names.
    is_of_file = isinstance(error, OSError) and error.filename is not None
    if is_of_file or isinstance(error, exceptions.BotoCoreError | ValueError):
        return StoreDeniedError(
            f"{what} cannot be asked: {message}. To go on: correct s3.credentials, s3.endpoint_url, s3.region, a "
            "variable AWS_… or a file of AWS, whichever this names."
        )
    return None


def _translate_refusal(
    response: Mapping[str, Any], secrets: Sequence[str], what: str, operation: str, expected: Set[int | str]
) -> Exception:
    code = str(response.get("Error", {}).get("Code", ""))
    message = mask_secrets(str(response.get("Error", {}).get("Message") or ""), secrets)
    status = _STATUS.get(code) or int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    answer = f"{status} {code}" + (f" ({message.rstrip('.')})" if message else "")
    if code != "NoSuchBucket" and (status in expected or code in expected):
        return ExpectedStatus(status, code, answer)
    if code in _AGAIN or status == 429 or (status >= 500 and code != "NotImplemented"):
        return RetryableError(answer)
    remedy = "see the store's documentation for this code"
    # An answer to HEAD has no body with details.
    if status == 400 and (code == "400" or re.search("server side encryption|encryption (key|param)", message, re.I)):
        remedy = (
            "where objects are written with a key of your own, s3.objects.customer_key has to be that key, over https"
        )
    if status in (401, 403):
        remedy = (
            f"allow these credentials {_PERMISSIONS.get(operation, 's3:PutObject')} here, "
            "and the use of the bucket's encryption key if it has one"
        )
    return StoreDeniedError(f"{what} was refused: {answer}. To go on: {_REMEDIES.get(code, remedy)}.")
