"""Changes of landed hours: fewer files, another form, without some rows, without files, with dead letters landed.

`hour_change.py` has the one engine: a commit replaces others and is made of their objects. So a change can be stopped
at any moment and repeated, and readers of the index see the hour before or after it. Kafka is not read. Each record is
in one listed file, or its commit counts it as erased.
"""
