// One node as a program of its own, so that tests can freeze and kill it. MYSQL_URL and REDIS_URL say where, RELAY
// names another build of the relay.
import type * as Relay from '../../src/events/relay.js';
import { NO_HANDLERS, openNode } from '../src/events/node.js';

const { startRelay } = (await import(process.env['RELAY'] ?? '../../src/events/relay.js')) as typeof Relay;
const node = await openNode({ teardown: () => undefined }, { mysql: process.env.MYSQL_URL!, redis: process.env.REDIS_URL! });
startRelay(node, NO_HANDLERS);
console.log('ready');
