import t from 'tap';
import { createDeviceLabels } from '../../../src/auth/device.js';
import { atMost } from '../../support/patience.js';

t.test('a device is named by browser and system; what tells neither stands for itself', (t) => {
  const expected: [string, string | null][] = [
    ['Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:128.0) Gecko/20100101 Firefox/128.0', 'Firefox on Windows'],
    ['Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1', 'Safari on iOS'],
    ['Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Mobile Safari/537.36', 'Chrome on Android'],
    ['Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36 Edg/126.0.0.0', 'Microsoft Edge on Windows'],
    ['Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Safari/605.1.15', 'Safari on macOS'],
    ['MyApp/3.2 (iPhone; iOS 17.1) CFNetwork/1', 'MyApp on iOS'],
    ['curl/8.1', 'curl/8.1'],
    ['ไม่รู้จัก', 'ไม่รู้จัก'],
    ['  ', null],
    ['', null],
  ];
  const label = createDeviceLabels();
  for (const round of ['new', 'known']) for (const [userAgent, name] of expected) t.equal(label(userAgent), name, `${round}: ${userAgent}`);
  t.end();
});

t.test('a user agent of any size or number costs little', (t) => {
  const label = createDeviceLabels();
  t.equal(label('x'.repeat(16_000))!.length, 512);
  const started = performance.now();
  for (let i = 0; i < 100; i += 1) label(`${'a/ ('.repeat(4000)}${i}`);
  for (let i = 0; i < 100_000; i += 1) label('Mozilla/5.0 (Windows NT 10.0; rv:128.0) Gecko/20100101 Firefox/128.0');
  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < 5000; i += 1) label(`Mozilla/5.0 (Windows NT 10.0; rv:128.0) Gecko/20100101 Firefox/${i}`);
  t.ok(performance.now() - started < atMost(2000));
  t.ok(process.memoryUsage().heapUsed - before < 32 * 1024 * 1024);
  t.end();
});
