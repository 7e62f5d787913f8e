"""Everything s3lake raises on purpose: terminal errors, and transient ones, which may succeed on retry."""


class S3LakeError(Exception):
    """Base of every error that s3lake raises on purpose.

    Messages quote servers and records, which may hold escape codes of terminals; none of them gets out.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(printable(message))


def printable(text: str) -> str:
    """Escape all characters of a text that are not printable, except line ends."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text)


class TerminalError(S3LakeError):
    """A retry cannot help; the user has to change something first."""


class TransientError(S3LakeError):
    """The request may succeed on retry; Dagster retries these errors and no others."""


class ConfigurationError(TerminalError):
    """A configuration that cannot be right; the message names place, value and remedy."""


class RecordError(TerminalError):
    """A record was refused by a stage, and the sink does not tolerate errors.

    Attributes:
        place: the record's place, the stage and the reason, by name.
    """

    def __init__(self, message: str, **place: str | int) -> None:
        super().__init__(message)
        self.place = {name: printable(value) if isinstance(value, str) else value for name, value in place.items()}


class GateError(TerminalError):
    """A micro-batch is not what the sink asks of one before it is committed; nothing of it is visible."""


class DataLossError(TerminalError):
    """Kafka no longer has, or no longer is, what the index expects."""


class UnreadableError(DataLossError):
    """An object is not the whole file that its commit wrote; rows that were read before still count."""


class IncompleteError(TerminalError):
    """Hours that are to be read are not landed, or only in part: land them first."""


class ForeignObjectError(TerminalError):
    """A key of this commit is taken by an object that s3lake did not write."""


class TooManyFilesError(TerminalError):
    """A micro-batch would have more files than one commit may list; a smaller one may have fewer."""


class StoreDeniedError(TerminalError):
    """The store refused a request for good: permissions, bucket, or no conditional writes."""


class TableConflictError(TerminalError):
    """A table cannot follow the index before the user has changed something."""


class DestinationRefusedError(TerminalError):
    """A destination cannot take the rows of an hour; it has none of them."""


class TaskFailedError(TerminalError):
    """A Spark task failed in a way that s3lake does not know."""


class FencedError(TransientError):
    """Another writer changed the tile first; nothing of this attempt is visible."""


class SourceUnavailableError(TransientError):
    """The source of topics did not answer in time."""


class KafkaUnavailableError(SourceUnavailableError):
    """The brokers did not answer in time."""


class MissingDocumentError(TransientError):
    """The index names a document that the store does not show: a wrong answer for now, or it was deleted."""


class ReplacedError(FencedError, MissingDocumentError):
    """A commit that the hour listed a moment ago was deleted with its files: the hour must be read again."""


class SparkUnavailableError(TransientError):
    """A worker, an executor, the session or its local disk gave out."""


class TableUnavailableError(TransientError):
    """A table or its catalog was in the way; the index is as it is, and whoever asks next brings the table to it."""


class DestinationUnavailableError(TransientError):
    """A destination does not answer, or gave up a transaction; the hour may be sent again."""


class LocalDiskError(TransientError):
    """A directory for temporary files is full, or cannot be written to."""


class StoreUnavailableError(TransientError):
    """The store did not answer, or answered 5xx, after the configured retries."""


class StoreConflictError(StoreUnavailableError):
    """The store answered 409: a request of the same key was under way, and this one was not carried out."""


def rebuild_error(name: str, message: str) -> S3LakeError:
    """Rebuild an error that another process raised. Return a TaskFailedError if s3lake has no error of this name."""
    error = globals().get(name)
    if isinstance(error, type) and issubclass(error, S3LakeError):
        return error(message)
    return TaskFailedError(f"{name}: {message}")
