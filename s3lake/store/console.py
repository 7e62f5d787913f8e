"""Where people look at objects: AWS's console, or the one that the configuration names."""

from urllib.parse import quote, urlsplit

_CONSOLES = {
    "amazonaws.com": "https://{region}.console.aws.amazon.com/s3/buckets/{bucket}?region={region}&prefix={prefix}",
    "amazonaws.com.cn": "https://{region}.console.amazonaws.cn/s3/buckets/{bucket}?region={region}&prefix={prefix}",
}
_GOVERNMENT = "https://{region}.console.amazonaws-us-gov.com/s3/buckets/{bucket}?region={region}&prefix={prefix}"


def address(template: str | None, endpoint_url: str, region: str, bucket: str, prefix: str) -> str | None:
    """The page that lists what is below `prefix`; None where the store is not AWS and no `template` names one.

    >>> address("https://minio:9001/browser/{bucket}/{prefix}", "http://minio:9000", "", "lake", "raw/a b/")
    'https://minio:9001/browser/lake/raw/a%20b/'
    """
    template = template or _of_aws(urlsplit(endpoint_url).hostname or "", region)
    if template is None:
        return None
    for name, value in {"region": region, "bucket": bucket, "prefix": prefix}.items():
        template = template.replace(f"{{{name}}}", quote(value))
    return template


def _of_aws(host: str, region: str) -> str | None:
    if region.startswith("us-gov-") and host.endswith(".amazonaws.com"):
        return _GOVERNMENT
    return next((template for domain, template in _CONSOLES.items() if host.endswith(f".{domain}")), None)
