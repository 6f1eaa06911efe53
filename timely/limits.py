"""Every bound of the runtime, with its unit. What is beyond one is refused with an error, never cut or
dropped.

Bounds that depend on one another are asserted here, at import.
"""

from typing import Final

KIB: Final = 1 << 10
MIB: Final = 1 << 20
GIB: Final = 1 << 30

WORKERS_MAX: Final = 256
"""Workers of one cluster: each is joined with every other, so connections grow with the square."""

UNITS_COUNT_MAX: Final = 256
"""Units of one balanced join: slots for rows, of which a worker has several."""

FRAME_BYTES_MAX: Final = 2 * GIB - MIB
"""One frame between workers; the rows of a batch are one frame, all columns together."""

REQUEST_BYTES_MAX: Final = 256 * MIB
"""One frame of a client's request; larger tables are sent in pieces."""

HEADER_BYTES_MAX: Final = 4 * MIB
"""The first frame of a client's request: everything but its rows. What is packed grows a hundredfold when it
is read, so this is less than a frame may have."""

NAME_CHARS_MAX: Final = 4_096
"""One name in a client's request: of an input, a writer, a reader, a builder."""

PORTS_MAX: Final = 1 << 16
"""Inputs, or outputs, of one stage."""

APPEND_BYTES_MAX: Final = 64 * MIB
"""About how large a piece of a table is that a client sends in one append."""

APPEND_EPOCHS_MAX: Final = 1 << 16
"""Epochs of which one append has rows: each is remembered by itself until it is sealed."""

ENTERING_EPOCHS_MAX: Final = 1_024
"""Epochs with rows that an input lets in at once; the next ones enter in its next turn, when all that is
ready on this worker has had its own. Where a key changes in every one of them, joins and groups cost the
square of how many there are at once."""

PART_BYTES_MAX: Final = 2 * MIB
"""The same for each worker, where a large insertion is spread over worker processes: on its way a part is
there three times, as the client packs it, as it travels, and as the worker reads it."""

PLAIN_VALUES_MAX: Final = 256
"""Values, rows times columns, of an insertion that goes as Python's values; what has more goes as a table,
which costs less by then."""

PLAIN_TEXT_CHARS_MAX: Final = 1_024
"""Characters or bytes of one such value."""

FEW_ROWS_MAX: Final = 1_024
"""Such rows of several insertions that an input keeps as Python's values until it makes a batch of them."""

PIECE_BYTES_MAX: Final = 8 * MIB
"""About how large a piece of an output is that a reader takes at once: a worker gives no more time to it
before it goes on with its work, and a reader that is slow leaves no more waiting. Rows of one piece have this
in words."""

HOLD_SECONDS_DEFAULT: Final = 600.0
"""How long what a reader of another system is about to read is kept after it was heard of last."""

READING_SECONDS_MAX: Final = 60.0
"""How long a worker keeps a collection laid out for readers that take it in pieces, after the last piece."""

COPIED_BYTES_MAX: Final = 64 * KIB
"""Frames up to this size are copied into the socket; a larger one is sent from where it lies, so that its
sender must not change it any more."""

NESTING_LEVELS_MAX: Final = 100
"""Lists, tuples and dicts in one another, in one value of a record or of a column of `any`."""

SNAPSHOT_ROWS_MAX: Final = 100_000_000
"""Rows of a snapshot in which some row stands more than once; `changes()` has such a row once, with its
multiplicity."""

SYMBOLS_COUNT_MIN: Final = 1_000_000
"""Values that a worker's dictionary has before it looks for what nothing refers to any more."""

SYMBOLS_BYTES_MIN: Final = 64 * MIB
"""Or the memory that its values take."""

SPREAD_ROWS_MIN: Final = 8_192
"""An insertion of fewer rows goes to one worker; of more, by ranges of rows to all."""

CONNECT_SECONDS_MAX: Final = 5.0
"""How long a client tries to reach a worker. One that is reached, and computes, is waited for longer."""

ANSWER_SECONDS_MAX: Final = 0.5
"""How much longer than its own time-out a request may take to be answered: a worker that computes cannot
answer, and the caller is told so instead."""

START_SECONDS_MAX: Final = 120.0
"""How long workers on one host may take to start and find one another."""

GATHER_SECONDS_MAX: Final = 3600.0
"""How long a worker waits for those of other hosts, which may be started by hand."""

INSTALL_SECONDS_MAX: Final = 300.0
"""How long an install may take: imports, and on a fresh machine the compilation of kernels."""

REPLY_SECONDS_MAX: Final = 300.0
"""How long a client waits for an answer that depends on no other worker."""

STAGED_SECONDS_MAX: Final = 600.0
"""How long the parts of one insertion wait on the workers for its client to say that all have arrived."""

ATTEMPT_SECONDS_MAX: Final = 6 * 3600.0
"""How long what a task has staged waits for the commit of its batch, whose other tasks may take their time.
"""

STAGED_BYTES_MAX: Final = 8 * GIB
"""Memory for such parts of one input on one worker."""

WRITERS_MAX: Final = 65_536
"""Writers whose appends one input remembers on one worker; the one that was silent longest goes first."""

GAPS_MAX: Final = 65_536
"""Gaps in the numbers of one writer's appends that are remembered: numbers are to follow one another."""

QUERIES_MAX: Final = 1 << 20
"""Queries of other systems whose batches one input counts, so that none enters twice; more are refused."""

READERS_MAX: Final = 4_096
"""Clients with a place of their own in one output."""

READER_SECONDS_MAX: Final = 3600.0
"""How long a client may be silent before its place in an output no longer holds changes back."""

GIVE_BACK_ROWS_MIN: Final = 1 << 18
"""After so many rows a worker that has nothing to do gives back memory that it has freed."""

GIVE_BACK_AT_ONCE_ROWS_MIN: Final = 1 << 16
"""The same of rows that have come together, where nobody waits for that to be done."""

KEPT_MEMORY_BYTES_MIN: Final = 16 * MIB
KEPT_MEMORY_BYTES_MAX: Final = 32 * MIB
KEPT_MEMORY_COUNT_MAX: Final = 64
"""Large memory that was dropped and is kept for who asks for as much, of a process while there is work: so
much, but no more than a quarter of what is in use; beyond that, up to the bound, as far as no more is held
than was in use at once; in no more than so many pieces."""

FREED_BYTES_MAX: Final = 64 * MIB
FREED_PIECE_BYTES_MAX: Final = 32 * MIB
"""What the C library keeps of freed memory at the end of its own while there is work, and the largest piece
of which it keeps anything. It takes no more for the latter."""

PENDING_EPOCHS_MAX: Final = 1_024
"""Epochs that an embedded cluster lets wait, sealed and not worked on, for a call that needs their work."""

PENDING_ROWS_MAX: Final = 1 << 20
"""Rows in such epochs."""

PENDING_BYTES_MAX: Final = 64 * MIB
"""Bytes of these rows, as they were given."""

PENDING_SECONDS_MAX: Final = 0.1
"""How long they wait at most, when somebody seals again."""

IN_TURN_ROWS_MAX: Final = 4_096
"""Of more rows embedded workers with threads begin at the same time what there is to do."""

EARLY_COUNT_MAX: Final = 65_536
"""Messages kept for a dataflow that has not begun on this worker."""

RECV_COUNT_MAX: Final = 1_024
"""Messages taken from a socket at once, before vertices and clients have their turn."""

RECV_BYTES_MAX: Final = 64 * MIB
"""Bytes after which no further message is taken from a socket at once."""

RING_BYTES_MAX: Final = MIB // 4
"""Shared memory for messages from one worker to another of the same host; those of more than an eighth of
it, and those for which there is no room just now, go through a socket. All of it is soon touched, by both, so
that it counts as resident twice; with four times as much loads take as long.
"""

RINGS_BYTES_MAX: Final = 16 * MIB
"""The same of one worker for all of its peers: with more of them each has less."""

SPIN_SECONDS_MAX: Final = 50e-6
"""After a message of another worker of the same host the next one is looked for so long before a worker
sleeps, where each has a core of its own.
"""

ROUND_SPIN_SECONDS_MAX: Final = 200e-6
"""So long a loop that the workers of a host run together looks out for the next word of the others, where
each has a core of its own and nothing else is to be done.
"""

STOP_SECONDS_MAX: Final = 5.0
"""How long a worker whose program is gone may take to end. A program that goes on waits for half of it, and
kills then who is still in a step."""

LOST_SECONDS_MAX: Final = 0.3
"""How long after its connection broke a peer's farewell may still come in; without one it is lost."""

VERDICT_SECONDS_MAX: Final = 1.0
"""How long a client waits, after one worker has failed, for another that knows the cause better."""

KEEPER_SECONDS_MAX: Final = 6.0
"""The same for whoever keeps the workers and knows best, which may be told of a silent host later."""

HEARTBEAT_MS_DEFAULT: Final = 1_000
"""How often an idle connection between workers is probed."""

SILENCE_SECONDS_DEFAULT: Final = 2.5
"""After so long without an answer to a probe the peer counts as lost, if the cluster is told nothing else."""

SILENCE_SECONDS_MAX: Final = 86_400.0
"""The most that it can be told: who is silent for longer is not waited for."""

REST_SECONDS_MIN: Final = 1.0
"""After so long without work a worker begins what does not pay earlier."""

IDLE_SECONDS_MAX: Final = 1.0
"""An idle worker looks up at least so often."""

CALLERS_MAX: Final = 65_536
"""Clients that a worker tells of its end though they do not ask: those that asked last."""

WAITING_COUNT_MAX: Final = 4_096
"""Requests of clients that wait for something on one worker; each is looked at after every step."""

WAITING_OF_ONE_COUNT_MAX: Final = 16
"""Such requests of one client, which asks one thing at a time: one that has gone leaves no more behind."""

DIRECT_COUNT_MAX: Final = 256
"""Clients of the same host that a worker talks with without ZeroMQ; others go by that."""

DIRECT_UNSENT_BYTES_MAX: Final = 4 * MIB
"""A client that leaves so much unread of what a worker has answered is not heard until it reads."""

POSTED_BYTES_MAX: Final = 128 * 1024
"""What the table of an insertion takes at most that a client posts: as much as a socket holds."""

DIRECT_TABLE_BYTES_MAX: Final = POSTED_BYTES_MAX + 64 * 1024
"""The same with what Arrow says of it, in a message of the system's sockets; a larger one goes by ZeroMQ."""

POSTED_COUNT_MAX: Final = 8
"""Insertions of few rows that a client has sent without having heard of them."""

SEALED_WAIT_SECONDS_MAX: Final = 0.5
"""How long a wait that is sent with a seal (`Flow.seal(wait=True)`) lies with a worker, which answers then in
any case. What takes longer is waited for by a request of its own.
"""

CLIENT_KEYS_MAX: Final = 16_384
"""Clients on the list of a cluster's keys."""

CLIENT_LIST_BYTES_MAX: Final = 4 * MIB
"""The file of that list, comments included."""

LIST_LOOK_SECONDS_MAX: Final = 1.0
"""How often a worker looks whether that file has changed, while nobody comes."""

TAKEN_AWAY_SECONDS_MAX: Final = 0.5
"""How long a client whose key was taken away may still be told so; then its connections are shut down."""

HANDSHAKE_SECONDS_MAX: Final = 10.0
"""How long a connection may take to prove its key."""

HANDSHAKE_FAILURES_MAX: Final = 8
"""After so many connections in turn that the other side ended before a key was proved there is no hope."""

AT_DOOR_COUNT_MAX: Final = 256
"""Connections of one socket that have not proved a key yet."""

AT_DOOR_BYTES_MAX: Final = 64 * KIB
"""What such a connection may send; keys are proved in less than 1 KiB."""

STDERR_COUNT_MAX: Final = 40
"""Last lines of a worker's error stream that its launcher keeps for the report of its death."""

assert COPIED_BYTES_MAX <= APPEND_BYTES_MAX, "pieces of a table are sent without copying"
assert 4 * PIECE_BYTES_MAX <= FRAME_BYTES_MAX, "a piece of an output fits a frame although its texts are long"
assert HOLD_SECONDS_DEFAULT <= READER_SECONDS_MAX, "who reads in pieces is not waited for longer than others"
assert PART_BYTES_MAX <= APPEND_BYTES_MAX, "a part is no larger than what goes as a whole"
assert 2 * APPEND_BYTES_MAX <= REQUEST_BYTES_MAX, "a piece fits a request although rows differ in size"
assert 8 * PLAIN_VALUES_MAX * PLAIN_TEXT_CHARS_MAX <= HEADER_BYTES_MAX, (
    "plain rows fit the header of a request"
)
assert POSTED_COUNT_MAX + 2 < WAITING_OF_ONE_COUNT_MAX, (
    "all that a client has sent may have to wait, and one more"
)
assert REQUEST_BYTES_MAX <= FRAME_BYTES_MAX, "what came in from a client fits a frame to another worker"
assert APPEND_BYTES_MAX <= STAGED_BYTES_MAX, "one part of an insertion may wait"
assert ANSWER_SECONDS_MAX < CONNECT_SECONDS_MAX, "who waits for a connection waits for its answer"
assert HEARTBEAT_MS_DEFAULT < 1_000 * SILENCE_SECONDS_DEFAULT, "one probe at least before a peer is lost"
assert (
    HEARTBEAT_MS_DEFAULT / 1_000 + SILENCE_SECONDS_DEFAULT + LOST_SECONDS_MAX + VERDICT_SECONDS_MAX < 5.0
), "clients are told of a lost peer within five seconds"
assert LOST_SECONDS_MAX < VERDICT_SECONDS_MAX < STOP_SECONDS_MAX, (
    "the cause is known before the killing begins"
)
