-- Messages to people, written in the transaction that causes them and sent by the sender of any node.

-- payload holds the values of the message (a code among them), sealed; it and recipient go once the
-- message is sent or given up, and next_attempt_at with them. attempts counts claims, so it also tells
-- a sender that lost its claim from the one that has it now.
CREATE TABLE IF NOT EXISTS notification_outbox (
  id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  user_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NULL,
  tenant VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  template VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  channel ENUM('EMAIL', 'SMS', 'WHATSAPP') NOT NULL,
  recipient VARCHAR(254) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  payload BLOB NULL,
  attempts INT UNSIGNED NOT NULL DEFAULT 0,
  next_attempt_at DATETIME(3) NULL DEFAULT (UTC_TIMESTAMP(3)),
  claimed_until DATETIME(3) NULL,
  sent_at DATETIME(3) NULL,
  failed_at DATETIME(3) NULL,
  last_error VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NULL,
  created_at DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)),
  PRIMARY KEY (id),
  KEY notification_outbox_due (channel, next_attempt_at),
  KEY notification_outbox_user (user_id),
  KEY notification_outbox_created (created_at)
) ENGINE = InnoDB;
