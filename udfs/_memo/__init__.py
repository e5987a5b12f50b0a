"""The files of a memo: answers of calls, in a directory that many processes read and write at once.

Knows pyarrow and file systems, and neither Spark nor Trio.
"""

# A directory has two kinds of files, and short notes:
#
#     answers-<digest>-<buckets>-<uuid>-<crc>.parquet  a part of the table of answers, which any engine can read
#     _log-<digest>-<buckets>-<uuid>                   answers of a task that is running or was killed
#     _replaced-<uuid>.json                            Parquet files whose answers are in other files now
#     _unfinished-<uuid>                               a file that is being written
#
# <digest> comes from what the memo holds: function, inputs, type of the answers. <buckets> is the range of buckets
# that the file may have, as start.stop.step. <crc> is the CRC32 of the Parquet footer. A Parquet file never changes,
# and only its task appends to a log. The same answer in two files does no harm, because the latest counts. So there are
# no locks.
#
#     writer               the log of a task
#     merge  reader        few files from many; the answers of a bucket
#     directory            names, claim, open files
#     format               bytes of logs and Parquet files, with checksums
#     answers  keys  location
