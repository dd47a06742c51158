-- What happened, and what other services are told. Both are written in the transaction of the change.

-- subject is the keyed hash of the user id (of the address while no account is known): it is all
-- that remains of a person once the account is purged.
CREATE TABLE IF NOT EXISTS audit_log (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  user_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NULL,
  subject CHAR(43) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  action VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  status ENUM('success', 'failure') NOT NULL,
  ip_address VARCHAR(45) CHARACTER SET ascii COLLATE ascii_bin NULL,
  detail VARCHAR(1024) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  created_at DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)),
  PRIMARY KEY (id),
  KEY audit_log_user (user_id, id)
) ENGINE = InnoDB;

-- seq orders the events of one user: the change they tell of holds that user's row lock.
CREATE TABLE IF NOT EXISTS event_outbox (
  seq BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  user_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  type VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  message TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  created_at DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)),
  published_at DATETIME(3) NULL,
  PRIMARY KEY (seq),
  UNIQUE KEY event_outbox_id (id),
  KEY event_outbox_due (published_at, seq),
  KEY event_outbox_user (user_id)
) ENGINE = InnoDB;
