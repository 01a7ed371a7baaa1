"""What a factory's files report of pilots: their outputs, its queue, its summary.

In: contents of files, decoded.  Out: facts of pilots in memory, jobs of the factory, its numbers.
Never here: the reading of a file.
"""
