"""Configurations of any dialect: where their texts come from, what their keys mean, and what is reported of them."""
