-- Accounts and what describes them. Addresses compare byte for byte (utf8mb4_bin); the store
-- also compares the value itself, because a PAD SPACE collation ignores trailing spaces.
-- No table refers to users by a foreign key: rows may be deleted by hand at any time.

CREATE TABLE IF NOT EXISTS users (
  id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  email VARCHAR(254) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  phone VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NULL,
  status ENUM('active', 'disabled') NOT NULL DEFAULT 'active',
  password_hash VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NULL,
  email_verified_at DATETIME(3) NULL,
  phone_verified_at DATETIME(3) NULL,
  locked_until DATETIME(3) NULL,
  gate_locked_until DATETIME(3) NULL,
  created_at DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)),
  deleted_at DATETIME(3) NULL,
  PRIMARY KEY (id),
  UNIQUE KEY users_email (email),
  KEY users_deleted (deleted_at)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS profiles (
  id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  user_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  provider VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  given_name VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  family_name VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  created_at DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)),
  PRIMARY KEY (id),
  KEY profiles_user (user_id)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS roles (
  id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  name VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  description VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  PRIMARY KEY (id),
  UNIQUE KEY roles_name (name)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS user_roles (
  user_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  role_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  PRIMARY KEY (user_id, role_id)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS tenants (
  id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  name VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  slug VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY tenants_slug (slug)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS user_tenants (
  user_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  tenant_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  PRIMARY KEY (user_id, tenant_id)
) ENGINE = InnoDB;
