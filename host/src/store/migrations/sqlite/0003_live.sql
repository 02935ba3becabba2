-- Entities that were erased.

-- 1: a person had its contents erased; later events are skipped.
ALTER TABLE entities ADD COLUMN erased INTEGER NOT NULL DEFAULT 0;
