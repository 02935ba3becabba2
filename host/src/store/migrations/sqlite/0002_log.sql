-- The log of embedded sources: what `POST /v1/events` and `seqgate ingest` took, until it is decided and older than its
-- retention.

-- One row per partition of an embedded source: where its log ends, and what it takes up. `next_offset` never goes back,
-- whatever is pruned.
CREATE TABLE log_lanes (
    id          INTEGER PRIMARY KEY,
    source      TEXT    NOT NULL,
    part        INTEGER NOT NULL,
    next_offset INTEGER NOT NULL, -- counts events, from 0
    events      INTEGER NOT NULL,
    bytes       INTEGER NOT NULL,
    UNIQUE (source, part)
) STRICT;

-- One row per event, appended, and removed by retention alone.
CREATE TABLE log (
    id    INTEGER PRIMARY KEY,
    lane  INTEGER NOT NULL,
    pos   INTEGER NOT NULL, -- its offset
    at    INTEGER NOT NULL,
    event BLOB    NOT NULL  -- a CloudEvent in JSON, or what could not be read
) STRICT;
CREATE UNIQUE INDEX log_by_position ON log (lane, pos);
