"""Every bound of the runtime, with its unit. The runtime refuses more than a bound with an error; it never
cuts or drops anything.

Bounds that depend on one another are asserted here, at import.
"""

from typing import Final

KIB: Final = 1 << 10
MIB: Final = 1 << 20
GIB: Final = 1 << 30

WORKERS_MAX: Final = 1_024
"""Workers of one cluster: each connects to every other, so connections grow with the square. A worker of the
largest cluster has some 7,200 file descriptors for them."""

UNITS_COUNT_MAX: Final = 256
"""Units of one balanced join: slots for rows; a worker has several."""

FRAME_BYTES_MAX: Final = 2 * GIB - MIB
"""One frame between workers; the rows of a batch are one frame, all columns together."""

REQUEST_BYTES_MAX: Final = 256 * MIB
"""One frame of a client's request; larger tables are sent in pieces."""

HEADER_BYTES_MAX: Final = 4 * MIB
"""The first frame of a client's request: everything but its rows. Packed values grow a hundredfold when they
are
read, so this is less than the bound on a frame."""

NAME_CHARS_MAX: Final = 4_096
"""One name in a client's request: of an input, a writer, a reader, a builder."""

ENDED_COUNT_MAX: Final = 10_000
"""Dataflows that have ended whose reasons a worker remembers: some 10 MB."""

NOTE_CHARS_MAX: Final = 1 << 20
"""The note of a dataflow, which says what it was made from."""

PORTS_MAX: Final = 1 << 16
"""Inputs, or outputs, of one stage."""

STAGES_MAX: Final = 1 << 16
"""Stages of one dataflow, ways into loops, out of them and back included; each takes about 10 KB of each
worker, and an install of so many takes some 10 s."""

APPEND_BYTES_MAX: Final = 64 * MIB
"""The approximate size of a piece of a table that a client sends in one append."""

APPEND_EPOCHS_MAX: Final = 1 << 16
"""Epochs with rows in one append: the append is remembered for each of them until that is sealed."""

ENTERING_EPOCHS_MAX: Final = 1_024
"""Epochs with rows that enter an input in one activation; the next ones enter in its next one, after all
other vertices that are ready on this worker. If a key changes in all of them, joins and groups cost the
square of their
number."""

PART_BYTES_MAX: Final = 2 * MIB
"""The approximate size of a part for one worker of a large insertion that is spread over worker processes.
Meanwhile a part takes memory three times: as the client packs it, as it is sent, and as the worker reads
it."""

PLAIN_VALUES_MAX: Final = 256
"""Values, rows times columns, of an insertion that is sent as Python values; a larger one is sent as a table,
which
costs less by then."""

PLAIN_TEXT_CHARS_MAX: Final = 1_024
"""Characters or bytes of one such value."""

FEW_ROWS_MAX: Final = 1_024
"""Rows sent as Python values, of several insertions, that an input collects before it makes a batch of
them.
"""

PIECE_BYTES_MAX: Final = 8 * MIB
"""The approximate size, in words, of the rows of one piece of an output. It bounds the time that a worker
spends
on a piece before it goes on with its work, and the memory that waits for a slow reader."""

TABLE_MESSAGE_BYTES_MAX: Final = 8 * MIB
"""The approximate size of the rows of one message, where a vertex sends a table to another worker: a larger
table goes as several messages."""

HOLD_SECONDS_DEFAULT: Final = 600.0
"""How long a worker holds the epochs that a reader of another system is reading, after it last heard of
it.
"""

READING_SECONDS_MAX: Final = 60.0
"""How long a worker keeps a collection laid out for readers of pieces, after the last piece was read."""

COPIED_BYTES_MAX: Final = 64 * KIB
"""Frames up to this size are copied into the socket; a larger one is sent without a copy, so the sender must
not
change it afterwards."""

NESTING_LEVELS_MAX: Final = 100
"""Nesting levels of lists, tuples and dicts in one value of a record or of a column of `any`."""

SNAPSHOT_ROWS_MAX: Final = 100_000_000
"""Rows of a snapshot in which some row is repeated; `changes()` has such a row once, with its
multiplicity.
"""

PICTURE_ROWS_MAX: Final = 10_000
"""Rows of an output that a notebook reads to show the first; of a larger one it shows the columns."""

LIVE_ROWS_MAX: Final = 1_000_000
"""Rows of an output that a live table, of a notebook or of a console, keeps, to have the first of them in any
order."""

LIVE_BYTES_MAX: Final = 256 * MIB
"""The size of these rows."""

LIVE_SHOWN_ROWS_MAX: Final = 1_000
"""Rows that a live table shows."""

LIVE_CELLS_COUNT_MAX: Final = 20_000
"""Cells that a table shows, live or of a query at the prompt: of many columns it shows fewer rows."""

LIVE_SENT_BYTES_MAX: Final = 500_000
"""What a live table sends to a notebook in a second; Jupyter's servers drop what is more than 1,000,000."""

SYMBOLS_COUNT_MIN: Final = 1_000_000
"""Values in a worker's dictionary from which on it looks for values that nothing refers to any more."""

SYMBOLS_BYTES_MIN: Final = 64 * MIB
"""Memory of these values from which on it does the same."""

SPREAD_ROWS_MIN: Final = 8_192
"""An insertion of fewer rows goes to one worker; a larger one, by ranges of rows, to all."""

CONNECT_SECONDS_MAX: Final = 5.0
"""How long a client tries to reach a worker. It waits longer for a worker that it has reached, and that
computes.
"""

RESUME_SECONDS_MAX: Final = 60.0
"""How long a client of a durable cluster tries to reach all workers again after it has lost one. It waits
longer for workers that it has reached, and that restore what the store has; and as long as its own program
starts them.
"""

RESUMES_COUNT_MAX: Final = 64
"""How often in a row one call of such a client goes on after a loss that comes less than
`RESUME_SECONDS_MAX` after the one before: the call itself may be what ends the workers."""

RESTARTS_COUNT_MAX: Final = 5
"""How often in a row the workers of a durable cluster are started again and end before all are ready. Then
the supervisor gives up."""

UNSTEADY_COUNT_MAX: Final = 20
"""The same for workers that were ready, and have ended within `STEADY_SECONDS_MIN` after that."""

STEADY_SECONDS_MIN: Final = 1.0
"""How long workers must be ready before their end has nothing to do with the one before."""

LOCK_SECONDS_MAX: Final = 10.0
"""How long a cluster that starts waits for a command, such as `python -m timely.durable fold`, that uses its
store at that moment."""

RESTART_GRACE_SECONDS_MAX: Final = 0.5
"""How long the other workers of a durable cluster may take, after one has ended, to tell their clients and to
end by themselves. Then the supervisor kills them."""

ANSWER_SECONDS_MAX: Final = 0.5
"""How much longer than its own timeout a request may take: a worker that computes cannot answer, and then the
caller gets an error that says so."""

START_SECONDS_MAX: Final = 120.0
"""How long workers on one host may take to start and find one another."""

GATHER_SECONDS_MAX: Final = 3600.0
"""How long a worker waits for the workers of other hosts, which may be started by hand."""

INSTALL_SECONDS_MAX: Final = 300.0
"""How long an install may take: imports, and on a fresh machine the compilation of kernels."""

REPLY_SECONDS_MAX: Final = 300.0
"""How long a client waits for an answer that depends on no other worker."""

STAGED_SECONDS_MAX: Final = 600.0
"""How long the parts of an insertion wait on the workers for the client's request to let them enter."""

ATTEMPT_SECONDS_MAX: Final = 6 * 3600.0
"""How long the staged rows of a task wait for the commit of their batch, whose other tasks may take long."""

STAGED_BYTES_MAX: Final = 8 * GIB
"""Memory for staged parts of one input on one worker."""

ENDED_DATAFLOWS_MAX: Final = 1_000
"""A base says of so many dataflows why they have ended, those with the highest numbers."""

WRITERS_MAX: Final = 65_536
"""Writers whose insertions one input remembers on one worker; the writer that was silent longest is dropped
first."""

GAPS_MAX: Final = 65_536
"""Gaps that are remembered in the numbers of one writer's insertions, which should be consecutive."""

QUERIES_MAX: Final = 1 << 20
"""Queries of other systems whose batches one input remembers, so that none enters twice; more are refused."""

READERS_MAX: Final = 4_096
"""Clients with a position of their own in one output."""

READER_SECONDS_MAX: Final = 3600.0
"""How long a client may be silent before its position in an output no longer holds changes back."""

REWRITE_SECONDS_MIN: Final = 600.0
"""The log of a durable cluster has the position of a client, and when it was written. A client that stays at
its position has it written again after this time, so that a restart can tell clients that are gone."""

GIVE_BACK_ROWS_MIN: Final = 1 << 18
"""Rows after which an idle worker gives back memory that it has freed."""

GIVE_BACK_AT_ONCE_ROWS_MIN: Final = 1 << 16
"""Rows that have come at once after which it gives back memory if no client waits meanwhile."""

KEPT_MEMORY_BYTES_MIN: Final = 16 * MIB
KEPT_MEMORY_BYTES_MAX: Final = 32 * MIB
KEPT_MEMORY_COUNT_MAX: Final = 64
"""Bounds on spare memory: large memory that was dropped, and that a process keeps for later requests while
there is work. It always keeps up to the first bound, but at most a quarter of the memory in use; more, up to
the second bound, only while spare and used memory together are no more than was in use at some time; in at
most the third
number of pieces."""

FREED_BYTES_MAX: Final = 64 * MIB
FREED_PIECE_BYTES_MAX: Final = 32 * MIB
"""How much freed memory the C library keeps at the end of its heap while there is work, and the largest piece
of which it keeps anything. It accepts no larger value for the latter."""

PENDING_EPOCHS_MAX: Final = 1_024
"""Sealed epochs without work on them that an embedded cluster lets wait for a call that needs the work."""

PENDING_ROWS_MAX: Final = 1 << 20
"""Rows in these epochs."""

PENDING_BYTES_MAX: Final = 64 * MIB
"""Bytes of these rows, as the client has passed them."""

PENDING_SECONDS_MAX: Final = 0.1
"""How long these epochs wait if another seal follows."""

SOURCE_SECONDS_MAX: Final = 2e-3
"""How long a call of an embedded cluster that waits for nothing works in a dataflow with a source, which may
never rest; a seal that works off what is too much, and `close`, 50 times as long."""

IN_TURN_ROWS_MAX: Final = 4_096
"""Rows of a call up to which embedded workers with threads may begin by taking turns in one thread; with more
rows
all threads begin at the same time."""

COLLECT_YOUNG_COUNT_MAX: Final = 20_000
"""Objects that a worker process makes, beyond those that it frees, before it looks for garbage among them,
between two steps: about a millisecond."""

COLLECT_IN_STEP_COUNT_MAX: Final = 200_000
"""The same before Python itself looks, in the midst of a step or in a thread of the user: what a callback
that runs for long leaves behind takes no more memory than so many objects do."""

COLLECT_ALL_COUNT_MAX: Final = 10_000_000
"""The same before it looks through all objects, if it never rests meanwhile."""

EARLY_COUNT_MAX: Final = 65_536
"""Messages that a worker keeps for a dataflow that has not begun there."""

RECV_COUNT_MAX: Final = 1_024
"""Messages taken from a socket at once, before vertices and clients get their turn."""

RECV_BYTES_MAX: Final = 64 * MIB
"""Bytes after which no further message is taken from a socket at once."""

UNRECEIVED_BYTES_MAX: Final = 8 * MIB
"""Bytes that a worker has sent to another one, which has not received them, from which on the sender lets no
new rows in; from twice as many on it runs no vertex. Of more than three workers each has twice as much for
all others together."""

UNRECEIVED_OF_PEER_BYTES_MIN: Final = MIB
"""The same bound in very large clusters."""

MESSAGE_BYTES_MIN: Final = 512
"""What a message counts for there, beside its frames: the memory of its parts in queues."""

RING_BYTES_MAX: Final = MIB // 4
"""Shared memory for messages from one worker to another of the same host. Messages of more than an eighth of
it, and messages that find no room, go through a socket. Both workers soon touch all of it, so it counts as
resident twice; with four times as much memory loads take as long.
"""

RINGS_BYTES_MAX: Final = 16 * MIB
"""Shared memory of one worker for all its peers: with many peers each ring is smaller."""

SPIN_SECONDS_MAX: Final = 50e-6
"""How long a worker busy-waits for the next message, after one of another worker of the same host, before it
sleeps; only if each worker has a core of its own.
"""

ROUND_SPIN_SECONDS_MAX: Final = 200e-6
"""How long a compiled loop that the workers of a host share busy-waits for the next round message, if each
worker has a core of its own and nothing else to do.
"""

STOP_SECONDS_MAX: Final = 5.0
"""How long a worker whose program is gone may take to end. A program that goes on waits for half of that
time, and
then kills workers that are still in a step."""

LOST_SECONDS_MAX: Final = 0.3
"""How long after its connection broke a peer's farewell may still come in; without one the peer is lost."""

VERDICT_SECONDS_MAX: Final = 1.0
"""How long a client waits, after one worker has failed, for another worker that knows the cause better."""

KEEPER_SECONDS_MAX: Final = 6.0
"""How long it waits if the workers have a keeper that knows best, which may detect a silent host later."""

HEARTBEAT_MS_DEFAULT: Final = 1_000
"""The time between two probes of an idle connection between workers."""

SILENCE_SECONDS_DEFAULT: Final = 2.5
"""How long a peer may leave a probe unanswered before it counts as lost, unless the cluster has another
setting.
"""

SILENCE_SECONDS_MAX: Final = 86_400.0
"""The largest setting: a peer that is silent for longer is lost in any case."""

REST_SECONDS_MIN: Final = 1.0
"""The time without work after which a worker begins work that does not pay earlier."""

IDLE_SECONDS_MAX: Final = 1.0
"""How long an idle worker waits before it looks for work by itself."""

CALLERS_MAX: Final = 65_536
"""Clients to which a worker sends its farewell without a request: those whose first request came last."""

WAITING_COUNT_MAX: Final = 4_096
"""Requests of clients that wait for something on one worker; each is checked after every step."""

WAITING_OF_ONE_COUNT_MAX: Final = 16
"""Waiting requests of one client, which sends few at a time: a client that has gone leaves no more behind."""

DIRECT_COUNT_MAX: Final = 256
"""Clients of the same host with a direct line to a worker; further ones use ZeroMQ."""

DIRECT_UNSENT_BYTES_MAX: Final = 4 * MIB
"""Answers that a client may leave unread on a direct line before the worker stops reading its requests."""

POSTED_BYTES_MAX: Final = 128 * 1024
"""The table of an insertion that a client posts: as much as a socket holds."""

DIRECT_TABLE_BYTES_MAX: Final = POSTED_BYTES_MAX + 64 * 1024
"""Such a table with Arrow's metadata, in a message of a direct line; a larger one goes by ZeroMQ."""

POSTED_COUNT_MAX: Final = 8
"""Insertions of few rows that a client has posted and that are not answered yet."""

SEALED_WAIT_SECONDS_MAX: Final = 0.5
"""How long a wait that is sent with a seal (`Flow.seal(wait=True)`) stays with a worker, which then answers
in any case. A longer wait is a request of its own.
"""

CLIENT_KEYS_MAX: Final = 16_384
"""Clients on the list of a cluster's keys."""

CLIENT_LIST_BYTES_MAX: Final = 4 * MIB
"""Size of the file of that list, comments included."""

LIST_LOOK_SECONDS_MAX: Final = 1.0
"""How often a worker checks whether that file has changed, while no client connects."""

TAKEN_AWAY_SECONDS_MAX: Final = 0.5
"""How long a client whose key was taken away may still get that error; then its connections are shut down."""

HANDSHAKE_SECONDS_MAX: Final = 10.0
"""How long a connection may take to prove its key."""

HANDSHAKE_FAILURES_MAX: Final = 8
"""Consecutive connections that the other side has ended before a key was proved. After these, and a time of
doubt, this side gives up."""

AT_DOOR_COUNT_MAX: Final = 256
"""Connections of one socket that have not proved a key yet."""

AT_DOOR_BYTES_MAX: Final = 64 * KIB
"""Bytes that such a connection may send; keys are proved in less than 1 KiB."""

UNWRITTEN_EPOCHS_MAX: Final = 32
"""Epochs that the sink of a Spark job holds until they are written; `commit` waits if there are more."""

UNWRITTEN_ROWS_MAX: Final = 4_000_000
"""Rows in these epochs; an epoch with more of them waits alone."""

GATHERED_ROWS_MAX: Final = 1 << 21
GATHERED_BYTES_MAX: Final = 64 * MIB
"""Rows, and their bytes, that wait at a join for the end of their epoch; when so many wait, the join takes
them up, however many are still to come."""

UNSETTLED_ROWS_MAX: Final = 1 << 17
"""Rows of changes that wait beside the collection of an output. It bounds the pause in which the output takes
them in, and their memory."""

UNREAD_ROWS_MAX: Final = 2_048
"""Rows of small batches that wait at an output, as they came, until somebody reads. It bounds the time that a
reader waits for them to be sorted."""

LOG_UNSYNCED_BYTES_MAX: Final = 256 * MIB
"""Bytes of records that the log of a durable cluster's process keeps in memory until they are synced. A
process with more waits for the disk before it takes further rows."""

LOG_SEGMENT_BYTES_DEFAULT: Final = 64 * MIB
"""Bytes of records after which a log goes on in another segment, with values of symbols written anew."""

FOLD_LOG_BYTES_MIN: Final = 4 * MIB
"""Bytes of logs since the last base, at least, before a fold begins; it also waits for half the bytes of that
base. So each byte of a base is written two or three times, and a store has at most three times the bytes of
the base, and this."""

FOLD_INCARNATIONS_MAX: Final = 64
"""Earlier incarnations whose logs no base stands for, before a fold begins, however little they have logged.
Each of them is a file that every start reads, and that the `begin` of every later one names."""

FOLD_BYTES_MAX: Final = 512 * MIB
"""About the memory for rows in a fold of a durable cluster's logs. Where there are more rows, the fold reads
them in several passes."""

FOLD_LOOSE_ROWS_MAX: Final = 1 << 20
"""Rows of an input that wait in a fold, at least, before they are summed with those that came before."""

FOLD_DIVIDED_ROWS_MIN: Final = 1 << 17
"""Rows of an input from which on its base is several files, so that several workers can share them."""

FOLD_FILE_ROWS_MAX: Final = 1 << 22
"""Rows of a file of a base, about."""

ANSWER_ROWS_MAX: Final = 1 << 31
"""Rows of a stored answer, each as often as it is there. An output with more has no stored answer."""

ANSWERS_COUNT_MAX: Final = 8
"""Stored answers of one output that stay for readers that may have found one of them."""

ANSWER_SECONDS_DEFAULT: Final = 600.0
"""A stored answer stays for so long when there is a newer one, if there are not too many of them."""

ANSWERS_STORED_SECONDS_DEFAULT: Final = 60.0
"""A running cluster stores the answers of its stored outputs anew after so long, if they are as of a later
epoch by then, and if that takes a small part of its time."""

ANSWER_LOG_BYTES_MAX: Final = 8 * MIB
"""While so many bytes of a log wait for the disk, no more rows of answers are written to it."""

DATED_EPOCHS_MAX: Final = 1024
"""A worker remembers when it opened so many of the last epochs of an input, and when they were complete at an
output, for the ages in `Flow.why` and `Cluster.stats`."""

TOLD_WRITERS_COUNT_MAX: Final = 16
"""Writers of one input whose positions `Cluster.stats` tells, those that were heard last."""

TOLD_READERS_COUNT_MAX: Final = 64
"""Readers of one output that `Cluster.stats` tells, those that are furthest behind; each can take 0.1 ms."""

HELD_EPOCHS_MAX: Final = 256
"""Of the epochs that an output keeps for a reader so many are measured, 0.1 ms; the others count alike."""

RETAINED_COUNT_MAX: Final = 256
"""Arrangements and outputs that one worker lists, with what keeps each from forgetting, the most bytes first.
The report says how many are left out."""

REASONS_COUNT_MAX: Final = 32
"""What holds an epoch, as far as one worker tells it: so many things, the likeliest first."""

REASON_CHARS_MAX: Final = 400
"""One text of a thing that holds an epoch; more is cut off."""

REPORT_CHARS_MAX: Final = 1_200
"""The report at the end of a `WaitTimeoutError`."""

REASON_POINTS_MAX: Final = 2_048
"""If more pointstamps are active, a worker does not say which of them lead to which: to find out takes a look
at each pair."""

REASONS_SECONDS_MAX: Final = 1.0
"""How long a client waits for what workers say about an epoch that is not complete."""

REPORTED_SECONDS_MIN: Final = 0.005
"""If a call with a shorter timeout runs out of time, the client does not ask the workers why."""

BUSY_SECONDS_MAX: Final = 0.25
"""If a worker has not said it by then, the client asks it by another way, by which it can answer in the
middle of a call."""

ASIDE_PORTS_DEFAULT: Final = 1_000
"""By how much the port of that other way is above the port for clients."""

STDERR_COUNT_MAX: Final = 40
"""Last lines of a worker's error stream that its launcher keeps for the report of its end."""

CONSOLE_PEERS_MAX: Final = 256
"""Connections to a console at one time; more are closed at once. A page has one, or two with a live table."""

CONSOLE_REQUEST_SECONDS_MAX: Final = 10.0
"""Until a request to a console has come whole; then its connection is closed."""

CONSOLE_STALLED_SECONDS_MAX: Final = 30.0
"""That a page may take no bytes of its events; then its connection is closed."""

CONSOLE_QUERY_BYTES_MAX: Final = 64 * KIB
"""A query at the prompt of a console."""

CONSOLE_QUERY_SECONDS_MAX: Final = 60.0
"""That a query at the prompt of a console may take."""

CONSOLE_CALLS_MAX: Final = 8
"""Calls to workers that pages of a console have under way, beside the one that asks for numbers."""

LIVE_OUTPUTS_COUNT_MAX: Final = 8
"""Outputs that pages of one console show live at one time."""

SHOWN_ROWS_MAX: Final = 200
"""Rows of a table on a page of a console; a filter chooses which."""

CELL_CHARS_MAX: Final = 300
"""Characters of one cell, of a page or in a notebook; how many there are stands behind them."""

assert COPIED_BYTES_MAX <= APPEND_BYTES_MAX, "pieces of a table are sent without copying"
assert 4 * PIECE_BYTES_MAX <= FRAME_BYTES_MAX, "a piece of an output fits a frame although its texts are long"
assert HOLD_SECONDS_DEFAULT <= READER_SECONDS_MAX, "readers of pieces are not held longer than others"
assert PART_BYTES_MAX <= APPEND_BYTES_MAX, "a part is no larger than an undivided append"
assert 2 * APPEND_BYTES_MAX <= REQUEST_BYTES_MAX, "a piece fits a request although rows differ in size"
assert 8 * PLAIN_VALUES_MAX * PLAIN_TEXT_CHARS_MAX <= HEADER_BYTES_MAX, (
    "plain rows fit the header of a request"
)
assert POSTED_COUNT_MAX + 2 < WAITING_OF_ONE_COUNT_MAX, (
    "all posted insertions of a client may have to wait, and one more request"
)
assert REQUEST_BYTES_MAX <= FRAME_BYTES_MAX, "a request of a client fits a frame to another worker"
assert APPEND_BYTES_MAX <= STAGED_BYTES_MAX, "one part of an insertion may wait"
assert ANSWER_SECONDS_MAX < CONNECT_SECONDS_MAX, "a client that waits for a connection waits for its answer"
assert HEARTBEAT_MS_DEFAULT < 1_000 * SILENCE_SECONDS_DEFAULT, "one probe at least before a peer is lost"
assert (
    HEARTBEAT_MS_DEFAULT / 1_000 + SILENCE_SECONDS_DEFAULT + LOST_SECONDS_MAX + VERDICT_SECONDS_MAX < 5.0
), "clients learn of a lost peer within five seconds"
assert LOST_SECONDS_MAX < VERDICT_SECONDS_MAX < STOP_SECONDS_MAX, (
    "the cause is known before the killing begins"
)
