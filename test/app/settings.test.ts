import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readSettings, SettingsError } from '../../app/settings/settings.ts';
import { defaultEndpoints } from '../../contract/endpoints.ts';
import { temporaryFolder } from '../support/folder.ts';

const service = { SERVICE_URL: 'https://service.example/v2.2', SERVICE_API_KEY: 'key-1' };

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

describe('defaults', () => {
  const defaults = readSettings({});

  // test/docs/docs.test.ts checks their values.
  test('are enough: an empty environment is valid', () => {
    expect(defaults).toMatchObject({ warnings: [], temporalConfigured: false, databaseUrl: undefined });
  });

  test('apply to an empty variable, for example in a compose file', () => {
    const names = ['SERVICE_URL', 'SERVICE_MAX_CONCURRENCY', 'DATABASE_URL', 'RECEIVER_PORT', 'LOG_LEVEL'];
    expect(readSettings(Object.fromEntries(names.map((name) => [name, ''])))).toEqual(defaults);
  });

  test('do not depend on variables of other programs', () => {
    expect(readSettings({ PATH: '/bin', PORT: 'x', __proto__: 'x', constructor: 'x' })).toEqual(defaults);
  });
});

const signingSecrets = [7, 8].map((byte) => `whsec_${Buffer.alloc(32, byte).toString('base64')}`);

describe('settings that are set', () => {
  test('are decoded: numbers, lists without blanks, the base URL without its last slash', () => {
    const companies = ['0b7c1f5e-2d7a-4b7e-9c61-0a1b2c3d4e5f', '11111111-2222-3333-4444-555555555555'];
    const settings = readSettings({
      SERVICE_URL: 'https://service.example/v2.2/',
      SERVICE_API_KEY: 'key-1',
      SERVICE_COMPANIES: ` ${companies.join(' , ')},`,
      SERVICE_TIME_ZONE: 'Europe/Berlin',
      SERVICE_MAX_CONCURRENCY: '3',
      DELETES_CAP_ROWS: '7',
      DELETES_CAP_PERCENT: '0',
      WEBHOOK_SECRETS: signingSecrets.join(', '),
      RETENTION_DAYS: '0',
      WEBHOOK_HEADER_PREFIX: 'Acme-',
      WEBHOOK_TOLERANCE_SECONDS: '60',
      DATABASE_URL: 'postgresql://u:p@h/w',
      METRICS_HOST: '10.0.0.7',
      METRICS_PORT: '9000',
      CONSOLE_HOST: '0.0.0.0',
      CONSOLE_PORT: '0',
      CONSOLE_USER_HEADER: 'X-Forwarded-User',
      CONSOLE_TRUSTED_PROXIES: '10.0.0.0/8, ::1',
      CONSOLE_OPERATORS: 'ada, bob',
      TEMPORAL_UI_URL: 'https://temporal.example/',
      METERSYNC_ACTOR: 'ada',
      RECEIVER_HOST: '0.0.0.0',
      RECEIVER_PORT: '0',
      LOG_LEVEL: 'debug',
      METERSYNC_DIR: '/var/lib/m',
      BACKFILL_CRON: 'CRON_TZ=Europe/Berlin 30 1 * * 6',
      RECONCILE_EVERY: 'none',
      STRICT_TLS: 'on',
      NODE_TLS_REJECT_UNAUTHORIZED: '0',
      CHECKS_OFF: 'late_bill, bill_gap',
      TEMPORAL_CODEC_KEYS:
        'new:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=, old:AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=',
      TEMPORAL_PLAINTEXT: 'accepted',
      RECEIVER_PUBLIC_URL: 'https://hooks.example/webhooks',
      SILENCE_HOURS: '0',
      NOTIFY_URL: 'slack+https://hooks.example/T0',
      NOTIFY_SECRET: signingSecrets[0],
      HEARTBEAT_URL: 'https://hc.example/ping',
    });
    expect(settings).toEqual({
      service: {
        url: 'https://service.example/v2.2',
        apiKey: 'key-1',
        companies,
        timeZone: 'Europe/Berlin',
        maxConcurrency: 3,
        endpoints: defaultEndpoints,
      },
      deletesCap: { rows: 7, percent: 0 },
      retentionDays: 0,
      webhooks: {
        secrets: signingSecrets,
        secretsFile: undefined,
        headerPrefix: 'Acme-',
        toleranceSeconds: 60,
        publicUrl: 'https://hooks.example/webhooks',
      },
      silenceHours: 0,
      notify: {
        target: { kind: 'slack', url: 'https://hooks.example/T0' },
        secret: signingSecrets[0],
        heartbeatUrl: 'https://hc.example/ping',
      },
      strictTls: 'on',
      proxies: { https: undefined, http: undefined, none: '' },
      certificatesIgnored: true,
      databaseUrl: 'postgresql://u:p@h/w',
      temporalConfigured: false,
      schedules: { full: { cron: '30 1 * * 6', timeZone: 'Europe/Berlin' }, reconcile: undefined },
      checksOff: ['late_bill', 'bill_gap'],
      temporalCodecKeys: [
        { id: 'new', key: Buffer.alloc(32, 1) },
        { id: 'old', key: Buffer.alloc(32, 2) },
      ],
      temporalPlaintext: 'accepted',
      receiver: { host: '0.0.0.0', port: 0 },
      metrics: { host: '10.0.0.7', port: 9000 },
      console: {
        host: '0.0.0.0',
        port: 0,
        access: {
          by: 'proxy',
          header: 'x-forwarded-user',
          proxies: ['10.0.0.0/8', '::1'],
          operators: ['ada', 'bob'],
        },
        temporalUi: 'https://temporal.example',
      },
      actor: 'ada',
      logLevel: 'debug',
      dataDir: '/var/lib/m',
      warnings: [],
    });
  });

  test('report a wrong target or secret of notifications, and quote neither', () => {
    const problem = (env: Record<string, string>) => problemsOf(env).join('\n');
    expect(problem({ NOTIFY_URL: 'xyz://key' })).toMatch(/^NOTIFY_URL has to be an address/);
    expect(problem({ NOTIFY_URL: 'https://h.example/a' })).toContain('NOTIFY_SECRET has to be set');
    const wrong = problem({ NOTIFY_URL: 'https://h.example/xyz', NOTIFY_SECRET: 'xyz' });
    expect(wrong).toContain('NOTIFY_SECRET: ');
    expect(wrong).not.toContain('xyz');
  });

  test.each([
    ['TEMPORAL_ADDRESS', 'there'],
    ['TEMPORAL_CONFIG_FILE', import.meta.filename],
    ['TEMPORAL_PROFILE', 'there'],
  ])("let %s configure Temporal by Temporal's own configuration", (name, value) => {
    expect(readSettings({ [name]: value }).temporalConfigured).toBe(true);
  });

  test.each(['temporal', 'temporal.example:7233', '10.0.0.7:7233', '[::1]:7233', 'my_temporal:1'])(
    'accept the address of Temporal %s',
    (address) => {
      expect(readSettings({ TEMPORAL_ADDRESS: address }).temporalConfigured).toBe(true);
    },
  );

  test('do not name a server if only the namespace is set', () => {
    expect(readSettings({ TEMPORAL_NAMESPACE: 'metering' }).temporalConfigured).toBe(false);
  });
});

describe('wrong settings', () => {
  const wrong = {
    SERVICE_URL: 'service.example',
    SERVICE_API_KEY: 'a key',
    SERVICE_COMPANIES: 'acme,bolt',
    SERVICE_TIME_ZONE: 'Mars/Olympus',
    SERVICE_MAX_CONCURRENCY: '0',
    WEBHOOK_HEADER_PREFIX: 'acme hook:',
    WEBHOOK_TOLERANCE_SECONDS: '5m',
    DATABASE_URL: 'mysql://h/w',
    TEMPORAL_ADDRESS: 'http://temporal.example:7233',
    RECEIVER_PORT: '65536',
    LOG_LEVEL: 'loud',
    SERVICE_ENDPOINTS: '/nowhere/endpoints.json',
  };

  test('are all listed at once, each with its variable and what would be right', () => {
    const problems = [
      'SERVICE_URL has to be a URL, for example https://service.example/v2.2',
      'SERVICE_API_KEY has to be printable text without spaces',
      'SERVICE_COMPANIES has to hold UUIDs separated by commas',
      'SERVICE_TIME_ZONE has to be a time zone, for example UTC or Europe/Berlin',
      'SERVICE_MAX_CONCURRENCY has to be a whole number from 1 to 100',
      'WEBHOOK_HEADER_PREFIX has to be the start of header names, for example webhook-',
      'WEBHOOK_TOLERANCE_SECONDS has to be a whole number from 1 to 86400',
      'DATABASE_URL has to be a URL, for example postgres://user:password@host:5432/warehouse?sslmode=verify-full',
      'TEMPORAL_ADDRESS has to be a host and a port, for example temporal.example:7233',
      'RECEIVER_PORT has to be a whole number from 0 to 65535',
      'LOG_LEVEL has to be trace, debug, info, warn, error or silent',
      'SERVICE_ENDPOINTS has to be the path of a JSON file: /nowhere/endpoints.json does not exist',
    ];
    expect(problemsOf(wrong)).toEqual(problems);
    expect(() => readSettings(wrong)).toThrow(`Wrong settings:\n  ${problems.join('\n  ')}`);
  });

  test.each([
    ['SERVICE_URL', 'https://service.example', 'has to end in the version, for example /v2.2'],
    ['SERVICE_URL', 'https://service.example/v2.2\r', 'has to end in the version'],
    ['SERVICE_URL', 'ftp://service.example/v2.2', 'has to be a URL'],
    ['SERVICE_URL', 'https://user:word@service.example/v2.2', 'has to be an address without a key'],
    ['SERVICE_URL', 'https://service.example/?token=word/v2.2', 'has to be an address without a key'],
    ['SERVICE_URL', 'https://service.example/#word/v2.2', 'has to be an address without a key'],
    ['SERVICE_MAX_CONCURRENCY', '101', 'from 1 to 100'],
    ['SERVICE_MAX_CONCURRENCY', '-1', 'from 1 to 100'],
    ['SERVICE_MAX_CONCURRENCY', '2.5', 'from 1 to 100'],
    ['RECEIVER_PORT', '8e3', 'from 0 to 65535'],
    ['WEBHOOK_TOLERANCE_SECONDS', '86401', 'from 1 to 86400'],
    ['SERVICE_TIME_ZONE', '+02:00', 'has to be a time zone'],
    ['SERVICE_TIME_ZONE', '+0200', 'has to be a time zone'],
    ['DATABASE_URL', 'localhost:5432/warehouse', 'has to be a URL'],
    ['LOG_LEVEL', 'INFO', 'has to be trace'],
    ['STRICT_TLS', 'yes', 'has to be on, outside or off'],
    ['TEMPORAL_CODEC_KEYS', 'a:c2hvcnQ=', 'has to hold id:key pairs'],
    ['TEMPORAL_CODEC_KEYS', `a:${'A'.repeat(43)}=,a:${'B'.repeat(43)}=`, 'each id once'],
    ['TEMPORAL_PLAINTEXT', 'on', 'has to be refused or accepted'],
    ['CONSOLE_HOST', '0.0.0.0', 'which other machines reach: put a proxy that logs users in before it'],
    ['CONSOLE_HOST', 'console.example', 'which other machines reach'],
    ['CONSOLE_TRUSTED_PROXIES', '10.0.0.0/33', 'has to hold addresses or networks'],
    ['CONSOLE_TRUSTED_PROXIES', 'proxy', 'has to hold addresses or networks'],
  ])('list %s=%s', (name, value, right) => {
    const problems = problemsOf({ ...service, [name]: value });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(new RegExp(`^${name} `));
    expect(problems[0]).toContain(right);
  });

  test('list an unknown check with the existing checks', () => {
    const [problem, ...more] = problemsOf({ CHECKS_OFF: 'late_bill,luck' });
    expect(more).toEqual([]);
    expect(problem).toMatch(
      /^CHECKS_OFF has to be names of checks .*, and luck is not a check: the checks are bill_gap, .*late_bill/,
    );
  });

  test.each(['temporal example', 'temporal:0', 'temporal:70000', 'temporal:', '::1', ''.padEnd(3, '/')])(
    'include the address of Temporal %s',
    (address) => {
      expect(problemsOf({ TEMPORAL_ADDRESS: address })).toHaveLength(1);
    },
  );

  test('include a service without its key', () => {
    const { SERVICE_URL } = service;
    const needed =
      'SERVICE_API_KEY has to be set together with SERVICE_URL: it is the key that the service gave you';
    expect(problemsOf({ SERVICE_URL })).toEqual([needed]);
    expect(problemsOf({ SERVICE_URL, SERVICE_API_KEY: '' })).toEqual([needed]);
    expect(problemsOf(service)).toEqual([]);
  });
});

test('a console needs trusted proxies for a user header, and a user header for proxies or operators', () => {
  const header = { CONSOLE_USER_HEADER: 'x-user' };
  for (const name of ['CONSOLE_TRUSTED_PROXIES', 'CONSOLE_OPERATORS'])
    expect(problemsOf({ [name]: '10.0.0.1' })).toEqual([
      expect.stringContaining('CONSOLE_USER_HEADER has to be set'),
    ]);
  expect(problemsOf(header)).toEqual([expect.stringContaining('CONSOLE_TRUSTED_PROXIES has to be set')]);
  expect(problemsOf({ CONSOLE_HOST: '127.0.0.2' })).toEqual([]);
});

describe('the endpoint file', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let path: string;
  beforeAll(async () => {
    folder = await temporaryFolder();
    path = join(folder.path, 'endpoints.json');
  });
  afterAll(() => folder.remove());
  const env = async (text: string) => {
    await writeFile(path, text);
    return { SERVICE_ENDPOINTS: path };
  };

  test('replaces its entries completely, and leaves the others', async () => {
    const file = { document: null, connections: { path: '/connections/of/{companyId}' } };
    const { endpoints } = readSettings(await env(JSON.stringify(file))).service;
    expect(endpoints).toEqual({ ...defaultEndpoints, ...file });
  });

  test('may begin with a byte order mark', async () => {
    const { endpoints } = readSettings(await env('\ufeff{"document":null}')).service;
    expect(endpoints).toEqual({ ...defaultEndpoints, document: null });
  });

  test('may have no entries', async () => {
    expect(readSettings(await env('{}')).service.endpoints).toEqual(defaultEndpoints);
  });

  test.each([
    ['cut short', '{"document": null', 'is not JSON: at position 17 (line 1 column 18)'],
    ['empty', '', 'is not JSON'],
    ['null', 'null', 'file: Invalid input: expected record, received null'],
    ['a list', '[]', 'file: Invalid input: expected record, received array'],
  ])('is refused if it is %s', async (_, text, problem) => {
    const [first, ...others] = problemsOf(await env(text));
    expect(first).toMatch(/^SERVICE_ENDPOINTS: /);
    expect(first).toContain(path);
    expect(first).toContain(problem);
    expect(others).toEqual([]);
  });

  test('is refused with each wrong entry, together with other wrong settings', async () => {
    const file = { invoices: { path: '/i' }, meters: { path: 'meter' }, document: { paths: '/d' } };
    const problems = problemsOf({ ...(await env(JSON.stringify(file))), LOG_LEVEL: 'loud' }).join('\n');
    for (const named of ['LOG_LEVEL ', 'invoices', 'meters.path: ', 'document.path: ', 'paths']) {
      expect(problems).toContain(named);
    }
  });

  test('cannot be read if it is a folder', async () => {
    const dir = join(folder.path, 'endpoints');
    await mkdir(dir);
    expect(problemsOf({ SERVICE_ENDPOINTS: dir })).toEqual([
      `SERVICE_ENDPOINTS: ${dir} cannot be read: EISDIR`,
    ]);
  });

  test('is not quoted if it is a file of secrets, named by mistake', async () => {
    for (const text of ['whsec_geheim', '{"a": whsec_geheim}', '"whsec_geheim']) {
      const problems = problemsOf(await env(text)).join('\n');
      expect(problems).toContain('is not JSON');
      expect(problems).not.toContain('geheim');
    }
  });
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
  });
  expect(problems.length).toBeGreaterThanOrEqual(6);
  expect(problems.join('\n')).not.toContain('geheim');
});
