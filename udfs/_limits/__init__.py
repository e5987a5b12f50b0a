"""Limits that all processes of a cluster share: a rate, or a budget, which a source leases to them in parts.

A rate has tokens. A token is for one call at one instant on the source's clock. The source never grants an instant
twice, and the instants are `1 / pace` apart. A process bounds the difference of the two clocks, and starts a call only
while it is certain that the token's instant has passed, by less than `LATENESS_SECONDS`. `pace` is a little below the
rate, so in any second, wherever it begins, at most `rate` calls start. Nothing else starts a call: without tokens,
calls wait.

A source that starts, or that may have lost its memory, cannot repeat an instant either. Tokens are for instants of at
most `HORIZON_SECONDS` ahead, so its first token is for the instant `HORIZON_SECONDS + 1 / pace` after its start.

    cluster_limits  what a user gives, and what a task gets of it
    lease           a process's side of any limit: its requests, and outages of the source
    rates           tokens: their source, and a process's lease
    budgets         amounts in the place of tokens: the same, and the file in which the sums outlive their driver
    signed_lines    messages between the driver and its workers
    limit_server    the driver's thread, which runs the sources
    sources         a worker's connection to this thread, or to a Redis, which runs the sources as scripts
    cluster_gates   the worker's gates

`cluster_limits`, `lease`, `rates` and `budgets` do not import Trio, and work in any thread and any process. The other
modules wait and send.
"""
