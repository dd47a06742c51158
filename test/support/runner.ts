import { runRetention } from '../../src/account/retention.js';
import { loadConfig } from '../../src/config/load.js';
import { createKeyring } from '../../src/keyring.js';
import { createLog } from '../../src/log.js';
import { createMysql } from '../../src/store/mysql.js';

/** One run of the retention task in a process of its own, so that it can be killed; tells its parent how far it is. */
const config = loadConfig(process.env);
const log = createLog('trace');
const mysql = createMysql({ url: config.mysqlUrl, connections: 2, log });
const keyring = createKeyring(config.secretKey, config.secretKeyPrevious);
const result = await runRetention({ config, log, mysql, keyring }, { share: 1, leaseMs: 800, progress: (done) => process.send!(done) });
process.stdout.write(`${JSON.stringify(result)}\n`);
await mysql.close();
process.disconnect();
