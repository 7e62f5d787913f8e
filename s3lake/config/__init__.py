"""Configurations: where their texts come from, which formats and dialects there are, and what is told of them."""
