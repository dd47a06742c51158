// A node that only sends, to be killed: `fork` it with the database and the mail server as arguments.
import { startSender } from '../../src/notify/sender.js';
import { notifyNeeds } from './notify.js';

const [, , database, smtp, leaseMs] = process.argv;
const { needs } = await notifyNeeds({ teardown: () => undefined }, { SMTP_URL: smtp! }, database);
startSender(needs, { timing: { pollMs: 20, leaseMs: Number(leaseMs) } });
