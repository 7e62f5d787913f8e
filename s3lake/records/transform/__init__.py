"""Transforms: what a connector's chain of single message transforms does to records before they are converted."""
