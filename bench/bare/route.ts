import { createRequire } from 'node:module';
import type * as Uws from 'uWebSockets.js';
import { answer } from '../child.js';

const uws = createRequire(import.meta.url)('uWebSockets.js') as typeof Uws;

/** A uWebSockets.js server that does nothing: the limit of anything that answers HTTP here. Gives its base URL and pid. */
answer(async () => {
  const app = uws.App().get('/*', (res) => void res.writeHeader('Content-Type', 'application/json').end('{"ok":true}'));
  const socket = await new Promise<Uws.us_listen_socket | false>((resolve) => void app.listen('127.0.0.1', 0, resolve));
  if (!socket) throw new Error('the bare route cannot listen');
  const base = `http://127.0.0.1:${uws.us_socket_local_port(socket)}`;
  return () => Promise.resolve({ base, pid: process.pid });
});
