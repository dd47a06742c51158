import type { Config } from './config/settings.js';

const DAY_MS = 24 * 3600 * 1000;

/** The moment from which a deleted account cannot be restored. */
export const permanentDeletionAt = ({ graceDays }: Pick<Config, 'graceDays'>, deletedAt: Date): Date => new Date(deletedAt.getTime() + graceDays * DAY_MS);
