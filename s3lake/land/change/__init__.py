"""What has landed is changed: made into few files, without a person's rows, in another format, too old to be kept.

Each change of an hour is a commit that takes the place of others, so it can be stopped anywhere and repeated, and
readers of the index see the hour before or after it. Nothing is read from Kafka. The records stay accounted for: each
is in one listed file, or its commit says that it was taken out.
"""
