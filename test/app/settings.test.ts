import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readSettings, SettingsError } from '../../app/settings/settings.ts';
import { defaultEndpoints } from '../../contract/endpoints.ts';
import { temporaryFolder } from '../support/folder.ts';
import { forFile } from '../support/for-file.ts';

/** Lists the problems of an environment, a line each. */
function problemsOf(env: Readonly<Record<string, string>>): readonly string[] {
  try {
    readSettings(env);
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
  return [];
}

// test/docs/docs.test.ts checks the values of the defaults.
describe('defaults', () => {
  const defaults = readSettings({});

  test('apply to an empty variable, for example in a compose file', () => {
    const names = ['SERVICE_URL', 'SERVICE_MAX_CONCURRENCY', 'DATABASE_URL', 'RECEIVER_PORT', 'LOG_LEVEL'];
    expect(readSettings(Object.fromEntries(names.map((name) => [name, ''])))).toEqual(defaults);
  });

  test('do not depend on variables of other programs', () => {
    expect(readSettings({ PATH: '/bin', PORT: 'x', __proto__: 'x', constructor: 'x' })).toEqual(defaults);
  });
});

const signingSecrets = [7, 8].map((byte) => `whsec_${Buffer.alloc(32, byte).toString('base64')}`);
const companies = ['0b7c1f5e-2d7a-4b7e-9c61-0a1b2c3d4e5f', '11111111-2222-3333-4444-555555555555'];
const key = (byte: number) => Buffer.alloc(32, byte);
const service = { SERVICE_URL: 'https://service.example/v2.2', SERVICE_API_KEY: 'key-1' };
const proxied = { CONSOLE_USER_HEADER: 'X-Forwarded-User', CONSOLE_TRUSTED_PROXIES: '10.0.0.0/8, ::1' };
const access = { by: 'proxy', header: 'x-forwarded-user', proxies: ['10.0.0.0/8', '::1'] };

const decoded: readonly (readonly [Record<string, string>, where: string, value: unknown])[] = [
  [
    { ...service, SERVICE_URL: 'https://service.example/v2.2/' },
    'service.url',
    'https://service.example/v2.2',
  ],
  [service, 'service.apiKey', 'key-1'],
  [{ SERVICE_COMPANIES: ` ${companies.join(' , ')},` }, 'service.companies', companies],
  [{ SERVICE_TIME_ZONE: 'Europe/Berlin' }, 'service.timeZone', 'Europe/Berlin'],
  [{ SERVICE_MAX_CONCURRENCY: '3' }, 'service.maxConcurrency', 3],
  [{ DELETES_CAP_ROWS: '7', DELETES_CAP_PERCENT: '0' }, 'deletesCap', { rows: 7, percent: 0 }],
  [{ RETENTION_DAYS: '0' }, 'retentionDays', 0],
  [{ WEBHOOK_SECRETS: signingSecrets.join(', ') }, 'webhooks.secrets', signingSecrets],
  [{ WEBHOOK_HEADER_PREFIX: 'Acme-' }, 'webhooks.headerPrefix', 'Acme-'],
  [{ WEBHOOK_TOLERANCE_SECONDS: '60' }, 'webhooks.toleranceSeconds', 60],
  [{ RECEIVER_PUBLIC_URL: 'https://h.example/w' }, 'webhooks.publicUrl', 'https://h.example/w'],
  [{ DATABASE_URL: 'postgresql://u:p@h/w' }, 'databaseUrl', 'postgresql://u:p@h/w'],
  [{ RECEIVER_HOST: '0.0.0.0', RECEIVER_PORT: '0' }, 'receiver', { host: '0.0.0.0', port: 0 }],
  [{ METRICS_HOST: '10.0.0.7', METRICS_PORT: '9000' }, 'metrics', { host: '10.0.0.7', port: 9000 }],
  [{ CONSOLE_HOST: '127.0.0.2' }, 'console.access', { by: 'loopback' }],
  [
    { ...proxied, CONSOLE_HOST: '0.0.0.0', CONSOLE_OPERATORS: 'ada, bob' },
    'console.access',
    { ...access, operators: ['ada', 'bob'] },
  ],
  [{ TEMPORAL_UI_URL: 'https://temporal.example/' }, 'console.temporalUi', 'https://temporal.example'],
  [{ METERSYNC_ACTOR: 'ada' }, 'actor', 'ada'],
  [{ LOG_LEVEL: 'debug' }, 'logLevel', 'debug'],
  [{ METERSYNC_DIR: '/var/lib/m' }, 'dataDir', '/var/lib/m'],
  [
    { BACKFILL_CRON: 'CRON_TZ=Europe/Berlin 30 1 * * 6' },
    'schedules.full',
    { cron: '30 1 * * 6', timeZone: 'Europe/Berlin' },
  ],
  [{ RECONCILE_EVERY: 'none' }, 'schedules.reconcile', undefined],
  [{ RECONCILE_EVERY: '15m' }, 'schedules.reconcile', { everyMs: 900_000 }],
  [{ STRICT_TLS: 'on' }, 'strictTls', 'on'],
  [{ NODE_TLS_REJECT_UNAUTHORIZED: '0' }, 'certificatesIgnored', true],
  [{ CHECKS_OFF: 'late_bill, bill_gap' }, 'checksOff', ['late_bill', 'bill_gap']],
  [
    { TEMPORAL_CODEC_KEYS: `new:${key(1).toString('base64')}, old:${key(2).toString('base64')}` },
    'temporalCodecKeys',
    [
      { id: 'new', key: key(1) },
      { id: 'old', key: key(2) },
    ],
  ],
  [{ TEMPORAL_PLAINTEXT: 'accepted' }, 'temporalPlaintext', 'accepted'],
  [{ SILENCE_HOURS: '0' }, 'silenceHours', 0],
  [
    { NOTIFY_URL: 'slack+https://hooks.example/T0' },
    'notify.target',
    { kind: 'slack', url: 'https://hooks.example/T0' },
  ],
  [
    { HTTPS_PROXY: 'http://upper.example:3128', https_proxy: 'lower.example:3128' },
    'proxies.https.host',
    'lower.example:3128',
  ],
  [{ no_proxy: 'near' }, 'proxies.none', 'near'],
  [{ HEARTBEAT_URL: 'https://hc.example/ping' }, 'notify.heartbeatUrl', 'https://hc.example/ping'],
  ...['temporal', 'temporal.example:7233', '10.0.0.7:7233', '[::1]:7233', 'my_temporal:1'].map(
    (address) => [{ TEMPORAL_ADDRESS: address }, 'temporalConfigured', true] as const,
  ),
  [{ TEMPORAL_CONFIG_FILE: import.meta.filename }, 'temporalConfigured', true],
  [{ TEMPORAL_PROFILE: 'there' }, 'temporalConfigured', true],
  [{ TEMPORAL_NAMESPACE: 'metering' }, 'temporalConfigured', false],
];

test.each(decoded)('decodes %j to %s %j', (env, where, value) => {
  const found = where
    .split('.')
    .reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], readSettings(env));
  expect(found).toEqual(value);
});

const keyNeeded =
  'SERVICE_API_KEY has to be set together with SERVICE_URL: it is the key that the service gave you';

/** Each wrong setting with the beginning of the only problem. */
const wrong: readonly (readonly [Record<string, string>, problem: string])[] = [
  [{ ...service, SERVICE_URL: 'service.example' }, 'SERVICE_URL has to be a URL, for example https://'],
  [{ ...service, SERVICE_URL: 'ftp://service.example/v2.2' }, 'SERVICE_URL has to be a URL'],
  [{ ...service, SERVICE_URL: 'https://service.example' }, 'SERVICE_URL has to end in the version'],
  [{ ...service, SERVICE_URL: 'https://service.example/v2.2\r' }, 'SERVICE_URL has to end in the version'],
  ...['user:word@service.example', 'service.example/?token=word', 'service.example/#word'].map(
    (place) =>
      [
        { ...service, SERVICE_URL: `https://${place}/v2.2` },
        'SERVICE_URL has to be an address without a key',
      ] as const,
  ),
  [{ SERVICE_URL: service.SERVICE_URL }, keyNeeded],
  [{ SERVICE_URL: service.SERVICE_URL, SERVICE_API_KEY: '' }, keyNeeded],
  [{ SERVICE_API_KEY: 'a key' }, 'SERVICE_API_KEY has to be printable text without spaces'],
  [{ SERVICE_COMPANIES: 'acme,bolt' }, 'SERVICE_COMPANIES has to hold UUIDs separated by commas'],
  ...['Mars/Olympus', '+02:00', '+0200'].map(
    (zone) => [{ SERVICE_TIME_ZONE: zone }, 'SERVICE_TIME_ZONE has to be a time zone'] as const,
  ),
  ...['0', '101', '-1', '2.5'].map(
    (text) =>
      [
        { SERVICE_MAX_CONCURRENCY: text },
        'SERVICE_MAX_CONCURRENCY has to be a whole number from 1 to 100',
      ] as const,
  ),
  [{ WEBHOOK_HEADER_PREFIX: 'acme hook:' }, 'WEBHOOK_HEADER_PREFIX has to be the start of header names'],
  [{ WEBHOOK_TOLERANCE_SECONDS: '5m' }, 'WEBHOOK_TOLERANCE_SECONDS has to be a whole number from 1 to 86400'],
  [{ WEBHOOK_TOLERANCE_SECONDS: '86401' }, 'WEBHOOK_TOLERANCE_SECONDS has to be a whole number'],
  [
    { DATABASE_URL: 'mysql://h/w' },
    'DATABASE_URL has to be a URL, for example postgres://user:password@host',
  ],
  [{ DATABASE_URL: 'localhost:5432/warehouse' }, 'DATABASE_URL has to be a URL'],
  [{ RECEIVER_PORT: '65536' }, 'RECEIVER_PORT has to be a whole number from 0 to 65535'],
  [{ RECEIVER_PORT: '8e3' }, 'RECEIVER_PORT has to be a whole number from 0 to 65535'],
  [{ LOG_LEVEL: 'INFO' }, 'LOG_LEVEL has to be trace, debug, info, warn, error or silent'],
  [{ STRICT_TLS: 'yes' }, 'STRICT_TLS has to be on, outside or off'],
  [
    { CHECKS_OFF: 'late_bill,luck' },
    'CHECKS_OFF has to be names of checks separated by commas, and luck is not',
  ],
  ...['http://t.example:7233', 'a b', 'a:0', 'a:70000', 'a:', '::1', '///'].map(
    (address) => [{ TEMPORAL_ADDRESS: address }, 'TEMPORAL_ADDRESS has to be a host and a port'] as const,
  ),
  [
    { TEMPORAL_CONFIG_FILE: '/nowhere' },
    'TEMPORAL_CONFIG_FILE has to name a TOML file: /nowhere does not exist',
  ],
  [{ TEMPORAL_CODEC_KEYS: 'a:c2hvcnQ=' }, 'TEMPORAL_CODEC_KEYS has to hold id:key pairs'],
  [
    { TEMPORAL_CODEC_KEYS: `a:${'A'.repeat(43)}=,a:${'B'.repeat(43)}=` },
    'TEMPORAL_CODEC_KEYS has to hold id:key pairs separated by commas, each key base64 of 32 bytes, each id once',
  ],
  [{ TEMPORAL_PLAINTEXT: 'on' }, 'TEMPORAL_PLAINTEXT has to be refused or accepted'],
  [{ CONSOLE_HOST: '0.0.0.0' }, 'CONSOLE_HOST is 0.0.0.0, which other machines reach: put a proxy'],
  [{ CONSOLE_HOST: 'console.example' }, 'CONSOLE_HOST is console.example, which other machines reach'],
  [{ ...proxied, CONSOLE_TRUSTED_PROXIES: '10.0.0.0/33' }, 'CONSOLE_TRUSTED_PROXIES has to hold addresses'],
  [{ ...proxied, CONSOLE_TRUSTED_PROXIES: 'proxy' }, 'CONSOLE_TRUSTED_PROXIES has to hold addresses'],
  [{ CONSOLE_TRUSTED_PROXIES: '10.0.0.1' }, 'CONSOLE_USER_HEADER has to be set'],
  [{ CONSOLE_OPERATORS: 'ada' }, 'CONSOLE_USER_HEADER has to be set'],
  [{ CONSOLE_USER_HEADER: 'x-user' }, 'CONSOLE_TRUSTED_PROXIES has to be set'],
  [{ NOTIFY_URL: 'xyz://key', NOTIFY_SECRET: signingSecrets[0] ?? '' }, 'NOTIFY_URL has to be an address'],
  [{ NOTIFY_URL: 'https://h.example/a' }, 'NOTIFY_SECRET has to be set together with NOTIFY_URL'],
  [{ NOTIFY_URL: 'https://h.example/xyz', NOTIFY_SECRET: 'xyz' }, 'NOTIFY_SECRET: '],
  ...[
    'socks5://proxy.example:1080',
    'http://',
    'http://user:12/word@p.example',
    'http://user:12#word@p.example',
    'http://user:word%@p.example',
  ].map(
    (proxy) =>
      [{ HTTPS_PROXY: proxy }, 'HTTPS_PROXY has to be a URL, for example http://proxy.example:3128'] as const,
  ),
  [{ SERVICE_ENDPOINTS: '/nowhere/e.json' }, 'SERVICE_ENDPOINTS has to be the path of a JSON file: /nowhere'],
];

test.each(wrong)('refuses %j: %s', (env, problem) => {
  expect(problemsOf(env)).toEqual([expect.stringContaining(problem)]);
  expect(problemsOf(env)[0]?.startsWith(problem)).toBe(true);
});

test('lists all wrong settings at once', () => {
  const env = { SERVICE_TIME_ZONE: 'x', RECEIVER_PORT: 'x', SERVICE_ENDPOINTS: '/nowhere' };
  const problems = problemsOf(env);
  expect(problems).toHaveLength(3);
  expect(() => readSettings(env)).toThrow(`Wrong settings:\n  ${problems.join('\n  ')}`);
});

test('no error quotes a secret, or a URL that may contain one', () => {
  const problems = problemsOf({
    SERVICE_URL: 'https://user:geheim@service.example',
    SERVICE_API_KEY: 'geheim key',
    WEBHOOK_SECRETS: 'whsec_geheim',
    WEBHOOK_HEADER_PREFIX: 'geheim!',
    DATABASE_URL: 'mysql://user:geheim@host/db',
    RECEIVER_PORT: 'geheim',
    LOG_LEVEL: 'geheim',
    NOTIFY_URL: 'https://h.example/geheim',
    NOTIFY_SECRET: 'geheim',
    HTTPS_PROXY: 'http://user:geheim%@proxy.example:3128',
  });
  expect(problems.length).toBeGreaterThanOrEqual(7);
  expect(problems.join('\n')).not.toContain('geheim');
});

describe('the endpoint file', async () => {
  const folder = await forFile(temporaryFolder());
  const path = join(folder.path, 'endpoints.json');
  const env = async (text: string) => {
    await writeFile(path, text);
    return { SERVICE_ENDPOINTS: path };
  };

  test.each([
    [
      '{"document": null, "connections": {"path": "/c/{companyId}"}}',
      { document: null, connections: { path: '/c/{companyId}' } },
    ],
    ['\ufeff{"document":null}', { document: null }],
    ['{}', {}],
  ])('replaces its entries and leaves the others: %j', async (text, entries) => {
    const { endpoints } = readSettings(await env(text)).service;
    expect(endpoints).toEqual({ ...defaultEndpoints, ...entries });
  });

  test.each([
    ['{"document": null', 'is not JSON: at position 17 (line 1 column 18)'],
    ['', 'is not JSON'],
    ['null', 'file: Invalid input: expected record, received null'],
    ['[]', 'file: Invalid input: expected record, received array'],
    // A file of secrets, named by mistake.
    ['whsec_geheim', 'is not JSON'],
    ['{"a": whsec_geheim}', 'is not JSON'],
    ['"whsec_geheim', 'is not JSON'],
  ])('is refused and not quoted if it is %j', async (text, problem) => {
    const [first, ...others] = problemsOf(await env(text));
    expect(first).toMatch(/^SERVICE_ENDPOINTS: /);
    expect(first).toContain(path);
    expect(first).toContain(problem);
    expect(first).not.toContain('geheim');
    expect(others).toEqual([]);
  });

  test('is refused with each wrong entry, together with other wrong settings', async () => {
    const file = { invoices: { path: '/i' }, meters: { path: 'meter' }, document: { paths: '/d' } };
    const problems = problemsOf({ ...(await env(JSON.stringify(file))), LOG_LEVEL: 'loud' }).join('\n');
    for (const named of ['LOG_LEVEL ', 'invoices', 'meters.path: ', 'document.path: ', 'paths'])
      expect(problems).toContain(named);
  });

  test('cannot be read if it is a folder', async () => {
    const dir = join(folder.path, 'endpoints');
    await mkdir(dir);
    expect(problemsOf({ SERVICE_ENDPOINTS: dir })).toEqual([
      `SERVICE_ENDPOINTS: ${dir} cannot be read: EISDIR`,
    ]);
  });
});
