"""The constants of `Auto`, each with its reason."""

from __future__ import annotations

# The start
START = 8  # calls: few enough for a service of any size
MOST = 800  # calls: each needs a connection, and a thousand are the usual limit of open files
DOUBLING = 0.06  # seconds: a refusal that takes 20 ms lets the limit grow by half
BY_TIME = 128  # calls that the limit reaches by time alone: no longer queue than with the usual 100
GAIN = 2.0  # calls that an answer adds: the limit triples with each generation

# Plateaus
FIRST_CALLS = 16  # whose latency is that of a service without load
GROWS = 1.4  # of the throughput, while the limit doubles: the geometric mean of 1 and 2
SLOWER = 2.0  # times the latency of the first calls: calls wait
CLIPPED = 3.0  # times that latency: a single straggler decides nothing
FEW_CALLS, PART = 16, 8  # calls of the recent latency: 16, or an eighth of those that run. Slow answers come in bursts
USED = 0.8  # of the limit, so that more calls would be made
HEADROOM = 1.25  # for a throughput that was measured too low
CALLS_HELD, CALLS_TESTED = 40, 60  # a throughput of fewer calls is chance
FIRST_WAIT, LAST_WAIT = 8, 64  # generations until a higher limit is tested; it doubles if the test fails

# Refusals. Three have one cause, unless there are 25 calls for each
STRIKES = 3
PRICE = 25.0  # calls for each refusal, before anything grows: less than 0.05 refusals a call
MOST_DEBT = 8.0  # generations without growth after a cut: the first refusals may be many
FIRST_PROBE, LAST_PROBE = 8, 512  # answers until one more call tests the number
REFUTED = 2  # numbers at a 429, after which it is a rate
USUAL = 0.01  # seconds of a refusal, as long as none has come
CLEAN_GENERATIONS = 8  # without a refusal, until the limit grows twice as fast
WARY = 0.25  # of the limit, its growth in the time of a refusal
LATER = 1.2  # refusal times, after which the refusals of earlier calls are known
UNKNOWN = 1.0  # seconds: a refusal takes at most this long, as long as none has come
ADMITTED = 2.5  # refusal times, after which a call that was not refused was admitted

# Rates: the constants of TCP CUBIC (RFC 9438), and those that few calls need
CUT, GROWTH = 0.7, 0.4
LEAST_CALLS, MOST_SECONDS = 40.0, 20.0  # from a cut back to w: a refusal in 20 calls is 5 %
BEYOND = 1.6  # times that time: the limit is not where it was, and the search begins again
CALLS_PER_DOUBLING = 3.0
FIRST_W = 0.5  # of the measured rate, where the search begins: the other half may be the burst of a bucket
LEAST_CUT = 0.5  # w falls to half at most, since the service may have refused all calls for a moment
EVENT = 0.5  # seconds: refusals within them are one event
FEW = 10  # calls, of which a share is chance
SPAN = 1.0  # seconds over which the rate is measured: a shorter time measures the burst of a bucket
SLOWEST, FASTEST = 0.05, 1e9  # calls a second
LATE = 0.05  # seconds by which a start may be late without delaying the next ones

# Outages. Five refusals in a row have a probability of 1/32 at twice the limit
IN_A_ROW = 5
LATER_LOOKS = 0.1  # of the time of the outage: looks at a service that stays down become rarer
FIRST_LOOK, LAST_LOOK = 0.1, 1.0  # seconds; the time between probes doubles

# Caution
CLEAN = 8  # starts without a refusal before it
APART = 4  # starts in the time of a refusal
SPACED = 2.0  # refusal times

# Chance
SHARE_OF = 1 / 200  # calls that the share of failures covers
TRIAL = 8  # refusals that are expected by chance, until it is decided whether half of the calls were refused less
SURE = 50  # calls, below which a share is not yet one
PASSED = 10  # calls, admitted at the rank of a refused one
MOST_PASS = 3  # admitted calls for each refused one: a quarter of the calls may fail
MOST_FAILING = 0.3
MOST_SHARE = 0.4

# Pauses. `Retry-After` is in whole seconds (RFC 9110, section 10.2.3), so services round up to 1
ROUNDED_UP = 1.0
JITTER = 0.1  # of a pause, so that processes do not return together
LONGEST_PAUSE = 60.0
CALM = 20.0  # pauses: the longest time until the pace is back where it was refused

FORGOTTEN_AFTER = 600.0  # seconds
ROUNDING = 1e-7
