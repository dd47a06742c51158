-- Enrolments of authenticator apps that were never confirmed are found without reading those that were.
SET @pending = IF(
  EXISTS (SELECT 1 FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = 'mfa_factors' AND index_name = 'mfa_factors_pending'),
  'DO 0',
  'ALTER TABLE mfa_factors ADD INDEX mfa_factors_pending (verified_at, created_at)'
);
PREPARE pending FROM @pending;
EXECUTE pending;
DEALLOCATE PREPARE pending;

-- The name that a client gave its device with the password waits here for the second factor.
SET @device = IF(
  EXISTS (SELECT 1 FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'mfa_tokens' AND column_name = 'device'),
  'DO 0',
  'ALTER TABLE mfa_tokens ADD COLUMN device VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL'
);
PREPARE device FROM @device;
EXECUTE device;
DEALLOCATE PREPARE device;
