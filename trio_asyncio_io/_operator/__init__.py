"""The operator: the tasks around the core, and the functions that start them."""

# The layout. Imports point down only.
#
#     stream               ordered_wait, unordered_wait, keyed_wait
#     operator             owns the nursery, and connects the parts; read it first
#     lifetime             opens and closes the function and the nursery; which exception leaves the block
#     feeder  worker       the tasks that accept records and call the function
#     signatures           the types of the public functions
#     ends                 what follows the end of a call, for each of its records
#     attempts             one call, and what replaces its result
#     results              the task that emits, and what the consumer reads: the results and the dead letters
#     gates                gates in use: their clocks, their users, and the calls that they have admitted
#     sharing              resources that several operators share by name
#     calls                the present call: its deadline, its gates, its operator
#     tasks                wake-ups, checkpoints, clocks; one task for all instants; Ctrl-C and context variables
#     cpu                  how long a thread has had a CPU, and has waited for one
#     definition           whether two functions are the same
#     function             the user's function
#     errors               the operator's own errors, and the user's exceptions as they leave the block
