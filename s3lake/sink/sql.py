"""SQL over converted values: projection and filter."""

from pydantic import model_validator

from s3lake.sink.part import Misfit, Part


class Sql(Part):
    """A SELECT list and a WHERE clause in Spark SQL.

    Columns are the value's fields, and `_key`, `_headers`, `_topic`, `_partition`, `_offset`, `_timestamp`. A record
    for which `where` is not true is skipped; its offset counts as landed.

    Attributes:
        select: columns as Spark SQL has them; None for all.
        where: records for which it is not true are skipped.
    """

    select: str = "*"
    where: str | None = None

    @model_validator(mode="after")
    def _parses(self) -> "Sql":
        from s3lake.transform import sql

        for name, text in (("select", self.select), ("where", self.where)):
            try:
                sql.parse(self.select if name == "select" else "*", None if name == "select" else text)
            except ValueError as error:
                raise Misfit(str(error), name) from None
        return self

    @property
    def fields(self) -> set[str]:
        """Fields of the value that it reads."""
        from s3lake.transform import sql

        return {path[0] for path in sql.parse(self.select, self.where).paths}
