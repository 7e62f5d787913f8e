"""Dates as Java's tools write them: patterns, names of months and days, time zones, and ISO 8601."""
