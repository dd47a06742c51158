-- Sessions, second factors and where an account is known to log in from.

-- secret_hash is the SHA-256 of the newest refresh secret, generation counts rotations.
-- successor_seal holds the newest secret sealed under its predecessor, so that only a caller
-- who holds the predecessor can be given the same successor.
CREATE TABLE IF NOT EXISTS sessions (
  id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  user_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NULL,
  generation INT UNSIGNED NOT NULL DEFAULT 0,
  secret_hash BINARY(32) NOT NULL,
  successor_seal BINARY(32) NULL,
  rotated_at DATETIME(6) NULL,
  amr VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  device VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  ip_address VARCHAR(45) CHARACTER SET ascii COLLATE ascii_bin NULL,
  created_at DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)),
  expires_at DATETIME(3) NOT NULL,
  absolute_expires_at DATETIME(3) NOT NULL,
  revoked_at DATETIME(3) NULL,
  revoked_reason VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NULL,
  deleted_at DATETIME(3) NULL,
  PRIMARY KEY (id),
  KEY sessions_user (user_id),
  KEY sessions_expires (expires_at),
  KEY sessions_deleted (deleted_at)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS mfa_factors (
  id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  user_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  method ENUM('totp', 'recovery_code') NOT NULL,
  secret VARBINARY(255) NULL,
  last_step BIGINT NULL,
  verified_at DATETIME(3) NULL,
  created_at DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)),
  PRIMARY KEY (id),
  UNIQUE KEY mfa_factors_user (user_id, method)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS mfa_recovery_codes (
  user_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  code_hash BINARY(32) NOT NULL,
  used_at DATETIME(3) NULL,
  PRIMARY KEY (user_id, code_hash)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS mfa_tokens (
  token_hash BINARY(32) NOT NULL,
  user_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  expires_at DATETIME(3) NOT NULL,
  PRIMARY KEY (token_hash),
  KEY mfa_tokens_user (user_id),
  KEY mfa_tokens_expires (expires_at)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS login_sources (
  user_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  network BINARY(16) NOT NULL,
  device BINARY(16) NOT NULL,
  locked_until DATETIME(3) NULL,
  last_seen_at DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)),
  PRIMARY KEY (user_id, network, device),
  KEY login_sources_seen (last_seen_at)
) ENGINE = InnoDB;

-- slot is unique and names the key that signs now ('ES256'); a retired key has none.
CREATE TABLE IF NOT EXISTS signing_keys (
  kid VARCHAR(43) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  slot VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NULL,
  alg VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  public_key TEXT CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  private_key VARBINARY(4096) NOT NULL,
  created_at DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)),
  PRIMARY KEY (kid),
  UNIQUE KEY signing_keys_slot (slot)
) ENGINE = InnoDB;
