import { stored } from '../support/owner.js';
import { until } from '../support/patience.js';
import type { Load } from './load.js';
import type { World } from './world.js';

type Judged = Pick<World, 'complaints'> & { needs: Pick<World['needs'], 'mysql'>; consumer: Pick<World['consumer'], 'events' | 'clashes'> };

/** How long after the last fault everything must be out, in ms. */
const PATIENCE_MS = 30_000;

/** Looks at what is left in MySQL and what other services heard, once all is quiet, and complains of what must not be. */
export async function judge(world: Judged, load: Pick<Load, 'lives' | 'due'>, patienceMs = PATIENCE_MS): Promise<void> {
  const { needs: { mysql }, complaints } = world;
  const numberOf = async (sql: string): Promise<number> => (await mysql.rows<{ n: number }>(`SELECT COUNT(*) AS n FROM ${sql}`))[0]!.n;
  const quiet = async (what: string, isSo: () => Promise<boolean>): Promise<unknown> => until(isSo, patienceMs).catch(() => complaints.push(`${what} within ${patienceMs} ms`));

  await quiet('T34: events were not published', async () => (await numberOf('event_outbox WHERE published_at IS NULL')) === 0);
  await quiet('T37: due accounts were not purged', async () => (await numberOf('users WHERE deleted_at < UTC_TIMESTAMP(3) - INTERVAL 30 DAY')) === 0);
  await quiet('T34: the consumer did not hear all', async () => (await mysql.rows<{ id: string }>('SELECT id FROM event_outbox')).every(({ id }) => world.consumer.events.has(id)));
  complaints.push(...world.consumer.clashes);
  await judgeLives(world, load);
  await judgePurges(world, load);
}

/** T29, T34: of each deletion and restore all or nothing. */
async function judgeLives({ needs: { mysql }, consumer, complaints }: Judged, { lives }: Pick<Load, 'lives'>): Promise<void> {
  const heard = [...consumer.events.values()];
  for (const { id, deleted, restored } of lives) {
    const { deletedAt, liveSessions, events, audit } = await stored(mysql, id);
    const of = (type: string): number => events.filter((event) => event['type'] === type).length;
    const audited = (action: string): number => audit.filter((entry) => entry === `${action} success`).length;
    const [deletions, restores] = [of('identity.user.deleted'), of('identity.user.restored')];
    const complain = (what: string): unknown => complaints.push(`${what} of ${id}: ${deletions} events, ${audited('account.deleted')} audited, ${deleted} answered deletions; ${restores}, ${audited('account.restored')}, ${restored} restores; deleted at ${String(deletedAt)}, ${liveSessions} sessions`);
    if (deletions !== audited('account.deleted') || restores !== audited('account.restored') || deletions - restores !== (deletedAt ? 1 : 0)) complain('T34: a half-done change');
    if (deletedAt && liveSessions > 0) complain('T34: sessions outlived the deletion');
    if (deleted > deletions || restored > restores) complain('T34: a change that was answered is lost');
    const heardOf = new Set(heard.filter((event) => event['userId'] === id && event.type === 'identity.user.deleted').map((event) => event.id)).size;
    if (heardOf !== deletions) complain(`T34: ${heardOf} events heard`);
  }
}

/** T37: each due account is gone, once, with all that hung on it. */
async function judgePurges({ needs: { mysql }, consumer, complaints }: Judged, { due }: Pick<Load, 'due'>): Promise<void> {
  const wanted = new Set(due);
  const heard = new Map<string, number>();
  for (const event of consumer.events.values()) {
    const user = event['userId'] as string;
    if (event.type === 'identity.user.permanently_deleted' && wanted.has(user)) heard.set(user, (heard.get(user) ?? 0) + 1);
  }
  const twice = [...heard].filter(([, n]) => n > 1).length;
  const [{ audited }] = (await mysql.rows<{ audited: number }>("SELECT COUNT(*) AS audited FROM audit_log WHERE action = 'account.purged'")) as [{ audited: number }];
  const [{ orphans }] = (await mysql.rows<{ orphans: number }>('SELECT COUNT(*) AS orphans FROM profiles p LEFT JOIN users u ON u.id = p.user_id WHERE u.id IS NULL')) as [{ orphans: number }];
  if (heard.size !== due.length || twice > 0 || audited !== due.length || orphans > 0) {
    complaints.push(`T37: ${due.length} accounts were due: ${heard.size} heard of, ${twice} twice, ${audited} audited, ${orphans} orphans`);
  }
}
