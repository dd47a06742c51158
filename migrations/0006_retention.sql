-- The nightly task, and what it needs to find its work.

-- One node at a time does a task: holder has the turn until held_until and renews it while it works.
-- done_for is the newest moment of the timetable whose work is complete; what comes before position in the
-- audit log needs no second look.
CREATE TABLE IF NOT EXISTS schedules (
  name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  holder CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NULL,
  held_until DATETIME(3) NULL,
  done_for DATETIME(3) NULL,
  position BIGINT UNSIGNED NOT NULL DEFAULT 0,
  PRIMARY KEY (name)
) ENGINE = InnoDB;

-- Sessions that ended long ago are found without reading past those that are tombstones already.
SET @indexes = IF(
  EXISTS (SELECT 1 FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = 'sessions' AND index_name = 'sessions_expired'),
  'DO 0',
  'ALTER TABLE sessions DROP INDEX sessions_expires, DROP INDEX sessions_deleted, ADD INDEX sessions_expired (deleted_at, expires_at), ADD INDEX sessions_revoked (deleted_at, revoked_at)'
);
PREPARE indexes FROM @indexes;
EXECUTE indexes;
DEALLOCATE PREPARE indexes;
