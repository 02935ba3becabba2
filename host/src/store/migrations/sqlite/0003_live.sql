-- Entities that were erased; what retention needs.

-- 1: a person had its contents erased; later events are skipped.
ALTER TABLE entities ADD COLUMN erased INTEGER NOT NULL DEFAULT 0;

-- When an applied event took the key, in host time: retention counts from it. Keys from before this column count from now.
ALTER TABLE intents ADD COLUMN taken INTEGER NOT NULL DEFAULT 0;
UPDATE intents SET taken = CAST(strftime('%s', 'now') AS INTEGER) * 1000;

-- Where an entity's kept history starts (R8): what it was after `revision`. `promoted` 0 is a checkpoint: recorded while
-- the revisions up to it are young, it becomes the base (1) once they are older than the retention, and they are pruned.
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
    through  INTEGER NOT NULL, -- when the last revision up to it was decided
    recorded INTEGER NOT NULL,
    PRIMARY KEY (machine, key, promoted)
) STRICT, WITHOUT ROWID;
