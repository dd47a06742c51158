import { createHmac } from 'node:crypto';
import type { Deps } from '../deps.js';
import type { Keyring } from '../keyring.js';
import { codeOf, type Delivery, type Transport } from './channels.js';

export type HookChannel = 'SMS' | 'WHATSAPP';

/**
 * What the receiver of a channel needs to check signatures, in base64url; one for each channel, and for nothing else.
 *
 * A call is `POST {"id", "to", "text", "template"}` with the headers
 * - `X-Portcullis-Timestamp`: seconds since the epoch,
 * - `X-Portcullis-Signature`: `sha256=` and the hex HMAC-SHA256 of `<timestamp>.<body>` under this text as the key;
 *   while SECRET_KEY is being replaced, the same under the former key follows after `, `,
 * - `Idempotency-Key`: the id, the same on every repeat.
 *
 * A receiver takes the message when one signature is right and the timestamp is not older than some minutes, and
 * forgets ids no sooner than that. It answers 2xx; 4xx refuses for good, except 408 and 429.
 */
export const webhookKey = (keyring: Keyring, channel: HookChannel): string => keyring.mac('webhook', channel).toString('base64url');

/** The value of X-Portcullis-Signature. */
export function signatures(keyring: Keyring, channel: HookChannel, timestamp: string, body: string): string {
  const keys = keyring.macs('webhook', channel).map((key) => key.toString('base64url'));
  return keys.map((key) => `sha256=${createHmac('sha256', key).update(`${timestamp}.${body}`).digest('hex')}`).join(', ');
}

/** Hands messages to a provider's HTTP endpoint. A login in the URL goes as Basic credentials. */
export function webhookTransport(url: string, channel: HookChannel, needs: Pick<Deps, 'keyring' | 'clock'>): Transport {
  const target = new URL(url);
  const login = target.username === '' ? null : Buffer.from(`${decodeURIComponent(target.username)}:${decodeURIComponent(target.password)}`).toString('base64');
  target.username = '';
  target.password = '';
  return {
    async deliver({ id, to, text, template }, signal) {
      const body = JSON.stringify({ id, to, text, template });
      const timestamp = String(Math.floor(needs.clock.now() / 1000));
      try {
        const response = await fetch(target, {
          method: 'POST',
          // Another host must not get the message: a redirect counts as a refusal.
          redirect: 'manual',
          headers: {
            'content-type': 'application/json',
            'idempotency-key': id,
            'x-portcullis-timestamp': timestamp,
            'x-portcullis-signature': signatures(needs.keyring, channel, timestamp, body),
            ...(login === null ? {} : { authorization: `Basic ${login}` }),
          },
          body,
          signal,
        });
        await response.body?.cancel();
        return judge(response.status);
      } catch (error) {
        return { kind: 'retry', reason: `http: ${codeOf(error)}` };
      }
    },
    close: () => undefined,
  };
}

function judge(status: number): Delivery {
  if (status >= 200 && status < 300) return { kind: 'sent' };
  const final = status >= 400 && status < 500 && status !== 408 && status !== 429;
  return { kind: final ? 'failed' : 'retry', reason: `http: ${status}` };
}
