-- Tokens that were mailed to the owner of an account: to prove an address, to set a new password. They take the
-- place of password_reset_tokens, which nothing ever wrote to.

-- One row for each account and purpose, so that the newest issue is the only good one. token_hash is the SHA-256 of
-- the token; address_hash that of the address it was mailed to: should the account get another, the token is void.
CREATE TABLE IF NOT EXISTS account_tokens (
  user_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  purpose ENUM('verify_email', 'reset_password') NOT NULL,
  token_hash BINARY(32) NOT NULL,
  address_hash BINARY(32) NOT NULL,
  created_at DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)),
  expires_at DATETIME(3) NOT NULL,
  PRIMARY KEY (user_id, purpose),
  UNIQUE KEY account_tokens_hash (token_hash),
  KEY account_tokens_expires (expires_at)
) ENGINE = InnoDB;

DROP TABLE IF EXISTS password_reset_tokens;
