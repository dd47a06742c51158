-- Signing in with another provider.

-- subject is the provider's name for the person, never used again for another one (OpenID Connect Core §2).
-- An account has one subject per issuer: an address that a provider gave to somebody else must not bring the
-- new holder into the account of the former one.
CREATE TABLE IF NOT EXISTS oauth_identities (
  issuer VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  subject VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  user_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  provider VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  created_at DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)),
  PRIMARY KEY (issuer, subject),
  UNIQUE KEY oauth_identities_user (user_id, issuer)
) ENGINE = InnoDB;

-- What the login proved before its second factor: pwd, or fed for another provider.
SET @first_factor = IF(
  EXISTS (SELECT 1 FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'mfa_tokens' AND column_name = 'first_factor'),
  'DO 0',
  'ALTER TABLE mfa_tokens ADD COLUMN first_factor VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT ''pwd'''
);
PREPARE first_factor FROM @first_factor;
EXECUTE first_factor;
DEALLOCATE PREPARE first_factor;
