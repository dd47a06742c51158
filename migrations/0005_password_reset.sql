-- Tokens that were mailed to set a new password; only their SHA-256 is kept.
CREATE TABLE IF NOT EXISTS password_reset_tokens (
  token_hash BINARY(32) NOT NULL,
  user_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  created_at DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)),
  expires_at DATETIME(3) NOT NULL,
  used_at DATETIME(3) NULL,
  PRIMARY KEY (token_hash),
  KEY password_reset_tokens_user (user_id),
  KEY password_reset_tokens_expires (expires_at)
) ENGINE = InnoDB;
