"""Commands about schemas: of files, and of the configuration itself."""

import json
from collections.abc import Mapping, Sequence

import typer
from rich.markup import escape
from rich.table import Table

from s3lake.cli.options import ConfigArgument, JsonOption, SinkOption, TopicOption, load, routes
from s3lake.cli.terminal import print_json, print_table, say, write
from s3lake.sink.schema import json_schema

app = typer.Typer(no_args_is_help=True, help="The columns of files and how they came to be; the configuration's own.")


@app.command("show")
def schema_show(
    config: ConfigArgument = None, sink: SinkOption = None, topic: TopicOption = None, as_json: JsonOption = False
) -> None:
    """The columns that files have now, with their types."""
    from s3lake.commit.evolution import present

    for lander in routes(load(config), sink, topic):
        columns = present(lander.index)
        rows = [{"column": name, "type": str(type)} for name, type in columns.items()]
        _print(lander.sink.name, lander.topic, rows, "files have no columns, or none yet", as_json=as_json)


@app.command("history")
def schema_history(
    config: ConfigArgument = None, sink: SinkOption = None, topic: TopicOption = None, as_json: JsonOption = False
) -> None:
    """Every change of columns: the hour and the commit that brought it, and the type before and after."""
    from s3lake.commit.evolution import steps

    for lander in routes(load(config), sink, topic):
        rows = [
            {
                "hour": step.hour,
                "commit": step.commit,
                "column": step.change.column,
                "before": step.change.before,
                "after": step.change.after,
            }
            for step in steps(lander.index)
        ]
        _print(lander.sink.name, lander.topic, rows, "no columns were seen yet", as_json=as_json)


@app.command("editor")
def schema_editor() -> None:
    """The JSON Schema of the native configuration, for editors: s3lake schema editor > s3lake.schema.json."""
    write(json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n")


def _print(sink: str, topic: str, rows: Sequence[Mapping[str, str | None]], nothing: str, *, as_json: bool) -> None:
    if as_json:
        for row in rows:
            print_json({"sink": sink, "topic": topic, **row})
        return
    if not rows:
        say(as_json, f"{sink}: {topic}: {nothing}")
        return
    table = Table(title=f"{sink}: {topic}", title_justify="left", box=None, pad_edge=False)
    for column in rows[0]:
        table.add_column(column, no_wrap=True)
    for row in rows:
        table.add_row(*(escape(cell or "") for cell in row.values()))
    print_table(table)
