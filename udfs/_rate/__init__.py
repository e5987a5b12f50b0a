"""One rate, or one budget, for all processes of a cluster: the protocol between these processes and the source.

A rate has tokens. A token is for one call at one instant on the source's clock. The source never grants an instant
twice, and the instants are `1 / pace` apart. A process bounds the difference of the two clocks, and starts a call only
while it is certain that the token's instant has passed, by less than `LATENESS`. `pace` is a little below the rate, so
in any second, wherever it begins, at most `rate` calls start. Nothing else starts a call: without tokens, calls wait.

A source that starts, or that may have lost its memory, cannot repeat an instant either. Tokens are for instants of at
most `HORIZON` ahead, so its first token is for the instant `HORIZON + 1 / pace` after its start.

    tokens          the source, and its requests and grants
    redis_tokens    the same source, and that of budgets, as scripts in a Redis
    lease           a process's side: when to send a request, and when a call may start
    budgets         both sides of a budget, whose processes lease amounts in the place of tokens
    budget_file     the sums of budgets that outlive their driver
    signed_lines    messages between the driver and its workers

The driver runs the source of `tokens` in a thread (`_plan.token_server`). `_trio_thread.rate_gates` has the worker's
gates. Nothing here imports Trio, or knows in which thread or process it runs.
"""
