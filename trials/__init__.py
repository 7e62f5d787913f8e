"""Harm done to s3lake, and what has landed compared: `python -m trials --help`. Nothing else imports this package."""
