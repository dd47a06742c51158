-- Where accounts log in from, by which session something was done, and locks that outlive Redis step by step.

-- A column cannot be added twice; each is added only where a crash did not leave it already.
SET @columns = IF(
  EXISTS (SELECT 1 FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'audit_log' AND column_name = 'session_id'),
  'DO 0',
  'ALTER TABLE audit_log ADD COLUMN session_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NULL, ADD COLUMN country CHAR(2) CHARACTER SET ascii COLLATE ascii_bin NULL'
);
PREPARE columns FROM @columns;
EXECUTE columns;
DEALLOCATE PREPARE columns;

-- lock_step: which lock in a row it is or was that locked_until tells of; means nothing without it.
SET @columns = IF(
  EXISTS (SELECT 1 FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'users' AND column_name = 'lock_step'),
  'DO 0',
  'ALTER TABLE users ADD COLUMN lock_step SMALLINT UNSIGNED NOT NULL DEFAULT 0'
);
PREPARE columns FROM @columns;
EXECUTE columns;
DEALLOCATE PREPARE columns;

SET @columns = IF(
  EXISTS (SELECT 1 FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'login_sources' AND column_name = 'lock_step'),
  'DO 0',
  'ALTER TABLE login_sources ADD COLUMN lock_step SMALLINT UNSIGNED NOT NULL DEFAULT 0'
);
PREPARE columns FROM @columns;
EXECUTE columns;
DEALLOCATE PREPARE columns;

-- Locks of addresses without an account, by keyed hash of the address: with Redis lost they would else be the only
-- ones that end, and so tell which addresses have an account.
CREATE TABLE IF NOT EXISTS stranger_locks (
  identity BINARY(32) NOT NULL,
  lock_step SMALLINT UNSIGNED NOT NULL,
  locked_until DATETIME(3) NOT NULL,
  PRIMARY KEY (identity),
  KEY stranger_locks_until (locked_until)
) ENGINE = InnoDB;

-- Where an account logged in last in each country; the position, to a hundredth of a degree, where one was told.
CREATE TABLE IF NOT EXISTS login_places (
  user_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  country CHAR(2) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  latitude DECIMAL(4, 2) NULL,
  longitude DECIMAL(5, 2) NULL,
  last_seen_at DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)),
  PRIMARY KEY (user_id, country),
  KEY login_places_seen (last_seen_at)
) ENGINE = InnoDB;
