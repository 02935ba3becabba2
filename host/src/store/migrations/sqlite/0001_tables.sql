-- Seqgate's tables on SQLite.
--
-- Times are milliseconds since the epoch. Names (verdicts, reasons, causes, states of rows) are the words of the
-- documentation, in lower case. Keys, payloads and digests are BLOBs. Columns marked (u64) use the whole unsigned range:
-- they hold the number with its top bit inverted, which keeps the order in a signed column; so 0 is stored as -2^63.
-- These are event versions (and what is compared with them), source offsets (`repair:` partitions count in versions),
-- logical times and the hashes that name rows. Counts (revisions, activations, epochs, deliveries) are plain integers.
--
-- Columns of an event, wherever one is kept: source, event_id, type, event_version (u64), previous (u64), event_time,
-- idempotency_key, depends_on (as the envelope writes it), logical_time (u64), content_type, attributes (a JSON list of
-- [name, value]), payload (exact bytes), digest (by bytes), value_digest (by value; NULL where both are equal).

-- One row per entity, written by whatever changes it. row_version is the guard of R7: it rises with whatever concerns
-- the entity. A row with revision 0 only guards: its events wait, or it is waited for (R5's ghosts, R7).
CREATE TABLE entities (
    machine        TEXT    NOT NULL,
    key            BLOB    NOT NULL,
    row_version    INTEGER NOT NULL,
    version        INTEGER NOT NULL, -- (u64)
    revision       INTEGER NOT NULL,
    state          TEXT,
    entered        INTEGER NOT NULL,
    schema         INTEGER NOT NULL,
    data           BLOB    NOT NULL,
    seen           TEXT,             -- JSON list of types; NULL for none
    pruned_through INTEGER NOT NULL, -- (u64)
    arrivals       INTEGER NOT NULL,
    emitted        TEXT,             -- JSON object topic -> count; NULL for none
    rules          BLOB,
    PRIMARY KEY (machine, key)
) STRICT, WITHOUT ROWID;
-- For `entity list --state`, and as the smallest index to count by.
CREATE INDEX entities_by_state ON entities (machine, state);
-- Few, so that ghosts are found and counted without reading entities.
CREATE INDEX entities_without_revision ON entities (machine, key) WHERE revision = 0;

-- One row per revision (R8), appended by the transaction that made it and removed by retention only. `consumed` is the
-- version that the revision consumed or numbered: G1 and G3 rest on both being unique. Payloads are appended, and only
-- two narrow indexes are written in no order: with the rows in the order of an index, a batch takes half as long again.
CREATE TABLE history (
    machine         TEXT    NOT NULL,
    key             BLOB    NOT NULL,
    revision        INTEGER NOT NULL,
    version         INTEGER NOT NULL, -- (u64)
    consumed        INTEGER,          -- (u64)
    cause           TEXT    NOT NULL,
    timer           TEXT,
    time            INTEGER NOT NULL,
    decided_at      INTEGER NOT NULL,
    previous_state  TEXT,
    next_state      TEXT,
    data_digest     BLOB    NOT NULL,
    effects_digest  BLOB    NOT NULL,
    schema          INTEGER NOT NULL,
    activation      INTEGER NOT NULL,
    rules           BLOB    NOT NULL,
    code            TEXT,
    notes           TEXT,             -- JSON list; NULL for none
    actor           TEXT,
    actor_reason    TEXT,
    source          TEXT,
    event_id        TEXT,
    type            TEXT,
    event_version   INTEGER,          -- (u64)
    previous        INTEGER,          -- (u64)
    event_time      INTEGER,
    idempotency_key TEXT,
    depends_on      TEXT,
    logical_time    INTEGER,          -- (u64)
    content_type    TEXT,
    attributes      TEXT,
    payload         BLOB,
    digest          BLOB,
    value_digest    BLOB
) STRICT;
CREATE UNIQUE INDEX history_by_revision ON history (machine, key, revision);
CREATE UNIQUE INDEX history_by_version ON history (machine, key, consumed) WHERE consumed IS NOT NULL;

-- One row per readable event (R2), inserted plainly at its first verdict, amended when it comes again or its verdict
-- changes. The id leads the key, so that `event show ID` needs no index of its own.
CREATE TABLE inbox (
    id              TEXT    NOT NULL,
    source          TEXT    NOT NULL,
    machine         TEXT    NOT NULL,
    key             BLOB    NOT NULL,
    type            TEXT    NOT NULL,
    version         INTEGER,          -- (u64)
    digest          BLOB    NOT NULL,
    value_digest    BLOB,             -- NULL where equal to digest
    verdict         TEXT    NOT NULL,
    reason          TEXT,
    first_source    TEXT,
    first_partition INTEGER,
    first_offset    INTEGER,          -- (u64)
    last_source     TEXT,             -- NULL: the last delivery is the first
    last_partition  INTEGER,
    last_offset     INTEGER,          -- (u64)
    deliveries      INTEGER NOT NULL,
    received        INTEGER NOT NULL,
    PRIMARY KEY (id, source, machine)
) STRICT, WITHOUT ROWID;

-- One row per idempotency key that an applied event took (R2), inserted plainly.
CREATE TABLE intents (
    intent      TEXT NOT NULL,
    machine     TEXT NOT NULL,
    key         BLOB NOT NULL,
    type        TEXT NOT NULL,
    data_digest BLOB NOT NULL, -- of the data alone, by value
    PRIMARY KEY (intent, machine)
) STRICT, WITHOUT ROWID;

-- One row per waiting event (R3, R4), written by the transaction that defers it and removed by the one that decides it.
CREATE TABLE deferred (
    ref             INTEGER PRIMARY KEY, -- (u64)
    machine         TEXT    NOT NULL,
    key             BLOB    NOT NULL,
    arrival         INTEGER NOT NULL,
    reason          TEXT    NOT NULL,
    named           TEXT,                -- JSON list of [machine, key in hex, version]; NULL for none
    since           INTEGER NOT NULL,
    deadline        INTEGER,
    ready           INTEGER NOT NULL,
    pos_source      TEXT    NOT NULL,
    pos_partition   INTEGER NOT NULL,
    pos_offset      INTEGER NOT NULL,    -- (u64)
    source          TEXT    NOT NULL,
    event_id        TEXT    NOT NULL,
    type            TEXT    NOT NULL,
    event_version   INTEGER,             -- (u64)
    previous        INTEGER,             -- (u64)
    event_time      INTEGER NOT NULL,
    idempotency_key TEXT,
    depends_on      TEXT,
    logical_time    INTEGER,             -- (u64)
    content_type    TEXT,
    attributes      TEXT,
    payload         BLOB    NOT NULL,
    digest          BLOB    NOT NULL,
    value_digest    BLOB
) STRICT;
-- Wide enough to count, sort and find gaps without reading payloads.
CREATE INDEX deferred_by_entity ON deferred (machine, key, event_version, reason, arrival, previous);
CREATE INDEX deferred_by_reason ON deferred (reason, since);
CREATE INDEX deferred_by_age ON deferred (since);
CREATE INDEX deferred_ready ON deferred (machine, key) WHERE ready = 1;
CREATE INDEX deferred_deadlines ON deferred (deadline) WHERE deadline IS NOT NULL;

-- Which versions of other entities a waiting event waits for (R3.9, R7), seen from those entities. Written with the
-- waiting event's row, and gone with it.
CREATE TABLE waits (
    target_machine TEXT    NOT NULL,
    target_key     BLOB    NOT NULL,
    target_version INTEGER NOT NULL, -- (u64)
    ref            INTEGER NOT NULL, -- (u64)
    machine        TEXT    NOT NULL,
    key            BLOB    NOT NULL,
    PRIMARY KEY (target_machine, target_key, target_version, ref)
) STRICT, WITHOUT ROWID;
CREATE INDEX waits_by_ref ON waits (ref);

-- One row per refused event, failed timer or failed migration (R5): open until a person, a policy or new rules deal with
-- it, then kept. `raw` holds the bytes of a malformed envelope.
CREATE TABLE dead_letters (
    ref              INTEGER PRIMARY KEY, -- (u64)
    machine          TEXT,
    key              BLOB,
    kind             TEXT    NOT NULL,
    class            TEXT    NOT NULL,
    code             TEXT    NOT NULL,
    message          TEXT    NOT NULL,
    raw              BLOB,
    pos_source       TEXT,
    pos_partition    INTEGER,
    pos_offset       INTEGER,             -- (u64)
    timer            TEXT,
    timer_due        INTEGER,
    blocks           INTEGER NOT NULL,
    status           TEXT    NOT NULL,
    attempts         INTEGER NOT NULL,
    since            INTEGER NOT NULL,
    changed          INTEGER NOT NULL,
    activation       INTEGER,
    rules            BLOB,
    actor            TEXT,
    actor_reason     TEXT,
    replaced_machine TEXT,
    replaced_source  TEXT,
    replaced_id      TEXT,
    source           TEXT,
    event_id         TEXT,
    type             TEXT,
    event_version    INTEGER,             -- (u64)
    previous         INTEGER,             -- (u64)
    event_time       INTEGER,
    idempotency_key  TEXT,
    depends_on       TEXT,
    logical_time     INTEGER,             -- (u64)
    content_type     TEXT,
    attributes       TEXT,
    payload          BLOB,
    digest           BLOB,
    value_digest     BLOB
) STRICT;
CREATE INDEX dead_letters_open ON dead_letters (machine, key) WHERE status = 'open';
CREATE INDEX dead_letters_by_status ON dead_letters (status, since);
CREATE INDEX dead_letters_by_machine ON dead_letters (machine, since);
CREATE INDEX dead_letters_by_age ON dead_letters (since);

-- One row per quarantined content (R2, R5): exact copies raise `copies`. A person closes it; the row stays, so that
-- copies that come later are known.
CREATE TABLE conflicts (
    ref              INTEGER PRIMARY KEY, -- (u64)
    machine          TEXT    NOT NULL,
    key              BLOB    NOT NULL,
    code             TEXT    NOT NULL,
    message          TEXT    NOT NULL,
    copies           INTEGER NOT NULL,
    actor            TEXT,
    actor_reason     TEXT,
    since            INTEGER NOT NULL,
    changed          INTEGER NOT NULL,
    pos_source       TEXT,
    pos_partition    INTEGER,
    pos_offset       INTEGER,             -- (u64)
    source           TEXT    NOT NULL,
    event_id         TEXT    NOT NULL,
    type             TEXT    NOT NULL,
    event_version    INTEGER,             -- (u64)
    previous         INTEGER,             -- (u64)
    event_time       INTEGER NOT NULL,
    idempotency_key  TEXT,
    depends_on       TEXT,
    logical_time     INTEGER,             -- (u64)
    content_type     TEXT,
    attributes       TEXT,
    payload          BLOB    NOT NULL,
    digest           BLOB    NOT NULL,
    value_digest     BLOB
) STRICT;
CREATE INDEX conflicts_by_event ON conflicts (event_id, source, machine);
CREATE INDEX conflicts_by_age ON conflicts (since);
CREATE INDEX conflicts_open ON conflicts (machine, key) WHERE actor IS NULL;
CREATE INDEX conflicts_open_by_age ON conflicts (since) WHERE actor IS NULL;

-- One row per message (R9), written by the transition that sends it; status, attempts and error are the relay's.
CREATE TABLE outbox (
    id             INTEGER PRIMARY KEY,
    machine        TEXT    NOT NULL,
    key            BLOB    NOT NULL,
    revision       INTEGER NOT NULL,
    idx            INTEGER NOT NULL,
    status         TEXT    NOT NULL,
    attempts       INTEGER NOT NULL,
    error          TEXT,
    changed        INTEGER NOT NULL,
    topic          TEXT    NOT NULL,
    type           TEXT    NOT NULL,
    message_key    BLOB,              -- NULL: the entity's own
    content_type   TEXT    NOT NULL,
    attributes     TEXT,
    data           BLOB    NOT NULL,
    entity_version INTEGER,
    cause_source   TEXT,
    cause_id       TEXT,
    cause_machine  TEXT,
    correlation_id TEXT,
    created        INTEGER NOT NULL
) STRICT;
-- Heads: what is not sent yet, per entity in the order of G7. Sent rows leave both indexes.
CREATE INDEX outbox_unsent ON outbox (machine, key, revision, idx) WHERE status <> 'SENT';
CREATE INDEX outbox_unsent_by_status ON outbox (status, id) WHERE status <> 'SENT';

-- One row per timer name of an entity (R6): pending while outcome is NULL, afterwards what became of it. Starting it
-- again replaces the row.
CREATE TABLE timers (
    machine  TEXT    NOT NULL,
    key      BLOB    NOT NULL,
    name     TEXT    NOT NULL,
    due      INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    outcome  TEXT,
    code     TEXT,
    closed   INTEGER,
    PRIMARY KEY (machine, key, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX timers_due ON timers (due, machine, key, name) WHERE outcome IS NULL;

-- One row per alarm's kind and subject (R12): it stands while cleared is NULL.
CREATE TABLE alarms (
    kind    TEXT    NOT NULL,
    subject TEXT    NOT NULL,
    message TEXT    NOT NULL,
    since   INTEGER NOT NULL,
    cleared INTEGER,
    PRIMARY KEY (kind, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX alarms_by_age ON alarms (since);
CREATE INDEX alarms_standing ON alarms (since) WHERE cleared IS NULL;

-- What people did, with who and why; appended only.
CREATE TABLE audit (
    id      INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    actor   TEXT    NOT NULL,
    reason  TEXT    NOT NULL,
    action  TEXT    NOT NULL,
    subject TEXT    NOT NULL,
    outcome TEXT    NOT NULL
) STRICT;

-- One row per partition, written by its owner alone (R7): the fence (epoch, next_offset), and the first verdicts of the
-- deliveries that it took. Its owner's UPDATE is the first statement of each batch.
CREATE TABLE partitions (
    source      TEXT    NOT NULL,
    part        INTEGER NOT NULL,
    epoch       INTEGER NOT NULL,
    next_offset INTEGER NOT NULL, -- (u64)
    owner       TEXT    NOT NULL,
    received    INTEGER NOT NULL DEFAULT 0,
    applied     INTEGER NOT NULL DEFAULT 0,
    duplicate   INTEGER NOT NULL DEFAULT 0,
    stale       INTEGER NOT NULL DEFAULT 0,
    conflict    INTEGER NOT NULL DEFAULT 0,
    deferred    INTEGER NOT NULL DEFAULT 0,
    illegal     INTEGER NOT NULL DEFAULT 0,
    malformed   INTEGER NOT NULL DEFAULT 0,
    fault       INTEGER NOT NULL DEFAULT 0,
    skipped     INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (source, part)
) STRICT, WITHOUT ROWID;

-- Later changes of verdicts, appended by whoever makes them (R7), folded by a task. from_verdict is '' for a delivery
-- that no owner's batch counted. G6's sums are the partitions' counters and these together.
CREATE TABLE verdict_moves (
    id           INTEGER PRIMARY KEY,
    source       TEXT    NOT NULL,
    part         INTEGER NOT NULL,
    from_verdict TEXT    NOT NULL,
    to_verdict   TEXT    NOT NULL,
    n            INTEGER NOT NULL
) STRICT;

-- Registered components (R8), by the SHA-256 of their bytes; never changed.
CREATE TABLE rules (
    digest      BLOB    PRIMARY KEY,
    machine     TEXT    NOT NULL,
    description TEXT    NOT NULL, -- JSON
    size        INTEGER NOT NULL,
    actor       TEXT    NOT NULL,
    at          INTEGER NOT NULL,
    bytes       BLOB    NOT NULL
) STRICT;
CREATE INDEX rules_by_machine ON rules (machine, at);
CREATE INDEX rules_by_age ON rules (at);

-- Which component decides (R8): the machine's highest number is in force. Appended only.
CREATE TABLE activations (
    machine TEXT    NOT NULL,
    number  INTEGER NOT NULL,
    digest  BLOB    NOT NULL,
    actor   TEXT    NOT NULL,
    reason  TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (machine, number)
) STRICT, WITHOUT ROWID;

-- The offset of a partition's first batch under an activation (R8); written by the partition's owner, once.
CREATE TABLE partition_switches (
    machine      TEXT    NOT NULL,
    number       INTEGER NOT NULL,
    source       TEXT    NOT NULL,
    part         INTEGER NOT NULL,
    start_offset INTEGER NOT NULL, -- (u64)
    at           INTEGER NOT NULL,
    PRIMARY KEY (machine, number, source, part)
) STRICT, WITHOUT ROWID;

-- What a source looked like at its first use (R10): its number of partitions, and which file it is read from.
CREATE TABLE sources (
    source     TEXT    PRIMARY KEY,
    partitions INTEGER,
    device     INTEGER, -- (u64)
    inode      INTEGER, -- (u64)
    digest     BLOB,
    head       INTEGER
) STRICT, WITHOUT ROWID;

-- Ids of committed transactions that moved no offset (R7); what settles their unknown outcome.
CREATE TABLE operations (
    id BLOB    PRIMARY KEY,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
