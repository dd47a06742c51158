import type { Deps } from '../../src/deps.js';

/** What audit and outbox say of an account's second factors, in order. */
export async function newsOf(mysql: Deps['mysql'], userId: string): Promise<{ audit: [string, unknown][]; events: { type: string }[] }> {
  const [audit, events] = await Promise.all([
    mysql.rows<{ entry: string; detail: string }>("SELECT CONCAT(action, ' ', status) AS entry, detail FROM audit_log WHERE user_id = ? AND action LIKE 'mfa%' ORDER BY id", [userId]),
    mysql.rows<{ message: string }>("SELECT message FROM event_outbox WHERE user_id = ? AND type LIKE 'identity.mfa.%' ORDER BY seq", [userId]),
  ]);
  const facts = (message: string): { type: string } => {
    const { id: _id, time: _time, ...rest } = JSON.parse(message) as { id: string; time: string; type: string };
    return rest;
  };
  return { audit: audit.map(({ entry, detail }) => [entry, JSON.parse(detail) as unknown]), events: events.map(({ message }) => facts(message)) };
}
