"""Tables that follow the index: they list the committed files by reference, and nothing is written twice.

The index stays the truth. A table is brought to the state of the tiles of some hours, by one snapshot, whoever asks for
it: the run that committed, the next one, or `s3lake table sync`. So there is nothing to undo and nothing to remember:
what a process did not come to, the next one finds missing.
"""

from s3lake.lake.table.iceberg.iceberg_table import LakeTable

__all__ = ["LakeTable"]
