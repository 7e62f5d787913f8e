"""A reference that leads nowhere."""


class Unresolved(ValueError):
    """A reference leads nowhere; the message says why, and never quotes a value."""
