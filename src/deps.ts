import type { SigningKeys } from './auth/signing-keys.js';
import type { HeldReplies } from './auth/held-replies.js';
import type { Clock } from './clock.js';
import type { Config } from './config/settings.js';
import type { Errands } from './errands.js';
import type { Events } from './events/relay.js';
import type { DeletionValidators } from './events/validators.js';
import type { Keyring } from './keyring.js';
import type { Limits } from './limits.js';
import type { Log } from './log.js';
import type { Notify } from './notify/sender.js';
import type { Metrics } from './ops/metrics.js';
import type { PasswordRules } from './passwords/rules.js';
import type { Hashing } from './pools/hashing.js';
import type { Signing } from './pools/signing.js';
import type { Mysql } from './store/mysql.js';
import type { Redis } from './store/redis.js';
import type { Scripts } from './store/scripts.js';
import type { liveSessionReader } from './store/sessions.js';
import type { liveProfileReader } from './store/profiles.js';

/** Everything that features may touch. A function takes the part it needs: `Pick<Deps, 'mysql' | 'clock'>`. */
export interface Deps {
  readonly config: Config;
  readonly keyring: Keyring;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly mysql: Mysql;
  readonly redis: Redis;
  readonly scripts: Scripts;
  readonly limits: Limits;
  readonly hashing: Hashing;
  readonly passwordRules: PasswordRules;
  readonly signing: Signing;
  readonly signingKeys: SigningKeys;
  readonly heldReplies: HeldReplies;
  readonly errands: Errands;
  readonly events: Events;
  readonly notify: Notify;
  readonly deletionValidators: DeletionValidators;
  readonly liveSession: ReturnType<typeof liveSessionReader>;
  readonly liveProfile: ReturnType<typeof liveProfileReader>;
}
