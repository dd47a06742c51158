-- Signing keys have a life: shown to verifiers, then used, then kept until the last token has ended.

-- slot is unique: over all nodes one key signs ('active') and one comes after it ('next'), whatever their algorithm,
-- and a key in another state has none. created_at is when a key was shown first. token_life_s is the longest ACCESS_TTL_S
-- of the nodes that may sign with it, wanted_at says that it is to take over as soon as it may. The private part goes
-- when a key stops signing.
SET @states = IF(
  EXISTS (SELECT 1 FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'signing_keys' AND column_name = 'state'),
  'DO 0',
  'ALTER TABLE signing_keys
     ADD COLUMN state ENUM(''next'', ''active'', ''retiring'', ''retired'') NOT NULL DEFAULT ''retired'' AFTER kid,
     MODIFY COLUMN private_key VARBINARY(4096) NULL,
     ADD COLUMN token_life_s INT UNSIGNED NOT NULL DEFAULT 86400,
     ADD COLUMN wanted_at DATETIME(3) NULL,
     ADD COLUMN activated_at DATETIME(3) NULL,
     ADD COLUMN retiring_at DATETIME(3) NULL,
     ADD COLUMN retired_at DATETIME(3) NULL'
);
PREPARE states FROM @states;
EXECUTE states;
DEALLOCATE PREPARE states;

-- Until now there was one key for each algorithm that had ever been set: the newest goes on, the others end.
UPDATE signing_keys SET state = 'retiring', slot = NULL, private_key = NULL, retiring_at = UTC_TIMESTAMP(3)
WHERE slot NOT IN ('active', 'next')
  AND kid <> (SELECT kid FROM (SELECT kid FROM signing_keys WHERE slot NOT IN ('active', 'next') ORDER BY created_at DESC, kid LIMIT 1) AS newest);
UPDATE signing_keys SET state = 'active', slot = 'active', activated_at = created_at WHERE slot NOT IN ('active', 'next');

-- When a value was last found that the former SECRET_KEY had sealed; secret names the present one by a keyed hash.
CREATE TABLE IF NOT EXISTS secret_changes (
  secret BINARY(8) NOT NULL,
  settled_at DATETIME(3) NOT NULL,
  PRIMARY KEY (secret)
) ENGINE = InnoDB;
