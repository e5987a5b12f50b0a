"""The memo: a directory of answers, so that no call is paid for twice."""
