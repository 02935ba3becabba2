-- Entities that were erased, and what retention leaves of a history (R8).

-- 1: a person had its contents erased; later events are skipped.
ALTER TABLE entities ADD COLUMN erased INTEGER NOT NULL DEFAULT 0;

-- At most two rows per entity: `promoted` 1 is where its kept history begins (all revisions up to this one were pruned),
-- `promoted` 0 is a candidate, taken at `taken`, that becomes the base once every row up to it is older than retention.
CREATE TABLE bases (
    machine  TEXT    NOT NULL,
    key      BLOB    NOT NULL,
    promoted INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    version  INTEGER NOT NULL, -- (u64)
    state    TEXT,
    entered  INTEGER NOT NULL,
    schema   INTEGER NOT NULL,
    data     BLOB    NOT NULL,
    timers   TEXT,             -- JSON object name -> due; NULL for none
    rules    BLOB,
    taken    INTEGER NOT NULL, -- host time
    PRIMARY KEY (machine, key, promoted)
) STRICT, WITHOUT ROWID;
CREATE INDEX bases_by_age ON bases (taken) WHERE promoted = 0;

-- What retention reads by age.
CREATE INDEX history_by_age ON history (decided_at);
CREATE INDEX inbox_by_age ON inbox (received);
