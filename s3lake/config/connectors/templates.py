"""Spelling native templates."""


def literal(text: str) -> str:
    """A text as a template spells it, braces doubled."""
    return text.replace("{", "{{").replace("}", "}}")
