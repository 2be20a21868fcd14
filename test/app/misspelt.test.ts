import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { secretVariables } from '../../app/secret-files.ts';
import { readSettings } from '../../app/settings.ts';
import { settings } from '../../verify/settings-page.ts';
import { temporaryFolder } from '../support/folder.ts';

const doubtsOf = (...names: readonly string[]) =>
  readSettings(Object.fromEntries(names.map((name) => [name, 'geheim']))).doubts;

/** Returns what a function returns, or the words of its error. */
function outcomeOf(read: () => string): string {
  try {
    return read();
  } catch (error) {
    return String(error);
  }
}

describe('a variable that is no setting', () => {
  test.each([
    ['DATABSE_URL', 'DATABASE_URL'],
    ['DATABAES_URL', 'DATABASE_URL'],
    ['DATABASEURL', 'DATABASE_URL'],
    ['DATABASE_URI', 'DATABASE_URL'],
    ['database_url', 'DATABASE_URL'],
    ['DATABSE_URL_FILE', 'DATABASE_URL_FILE'],
    ['WEBHOK_SECRET', 'WEBHOOK_SECRETS'],
    ['TEMPORAL_ADRESS', 'TEMPORAL_ADDRESS'],
    ['TEMPORAL_NAMESPCE', 'TEMPORAL_NAMESPACE'],
    ['SECRET_DIR', 'SECRETS_DIR'],
  ])('is reported where its name is nearly that of one: %s', (name, meant) => {
    expect(doubtsOf(name)).toEqual([`${name} is no setting; ${meant} is not set: was it meant?`]);
  });

  test('is not where that one is set, also by a file or a folder', async () => {
    const folder = await temporaryFolder();
    onTestFinished(() => folder.remove());
    const file = join(folder.path, 'DATABASE_URL');
    await writeFile(file, 'postgres://u:p@h/w\n');
    const near = { DATABSE_URL: 'x', DATABASE_URI: 'x', DATABASE_URL_FIL: 'x' };
    for (const set of [
      { DATABASE_URL: 'postgres://u:p@h/w' },
      { DATABASE_URL_FILE: file },
      { SECRETS_DIR: folder.path },
    ])
      expect(readSettings({ ...near, ...set }).doubts).toEqual([]);
  });

  test.each([
    ['of a shell', 'PATH HOME USER LOGNAME SHELL PWD OLDPWD LANG LC_ALL TZ TERM TMPDIR HOSTNAME DISPLAY'],
    ['of Node and npm', 'NODE_ENV NODE_OPTIONS NODE_EXTRA_CA_CERTS npm_config_loglevel npm_lifecycle_event'],
    [
      'of systemd',
      'NOTIFY_SOCKET LISTEN_FDS INVOCATION_ID JOURNAL_STREAM CREDENTIALS_DIRECTORY RUNTIME_DIRECTORY',
    ],
    [
      'of Postgres',
      'PGHOST PGPORT PGUSER PGPASSWORD PGDATABASE PGSSLMODE POSTGRES_PASSWORD_FILE POSTGRES_URL',
    ],
    [
      'of Kubernetes',
      'KUBERNETES_PORT KUBERNETES_SERVICE_HOST METERSYNC_PORT RECEIVER_SERVICE_PORT CONSOLE_PORT_80_TCP',
    ],
    [
      'of links',
      'DATABASE_NAME DATABASE_PORT DATABASE_HOST DATABASE_SSL DATABASE_PORT_5432_TCP DATABASE_ENV_URL',
    ],
    [
      'of Temporal',
      'TEMPORAL_UI_PORT TEMPORAL_CLI_ADDRESS TEMPORAL_TLS_CLIENT_CERT_DATA TEMPORAL_CODEC_AUTH',
    ],
    [
      'of others',
      'PORT HOST LOG_FORMAT SERVICE_NAME SERVICE_PORT API_KEY SANDBOX_DATABASE_URL REDIS_URL ALL_PROXY https_proxy',
    ],
  ])('is not where it belongs to others: %s', (_, names) => {
    expect(doubtsOf(...names.split(' '))).toEqual([]);
  });

  test.each([...Object.keys(settings), ...secretVariables.map((name) => `${name}_FILE`)])(
    'is not the setting %s',
    (name) => {
      // An error would name doubts, too.
      const said = outcomeOf(() => doubtsOf(name).join('\n'));
      expect(said).not.toContain('is no setting');
    },
  );

  test('is named among what is wrong, and its value is not', () => {
    const wrong = () => readSettings({ SERVICE_URL: 'https://s.example/v2', SERVICE_APIKEY: 'geheim' });
    expect(wrong).toThrow('SERVICE_APIKEY is no setting; SERVICE_API_KEY is not set: was it meant?');
    expect(wrong).not.toThrow(/geheim/);
  });
});

test('a file of SECRETS_DIR that sets nothing is reported, unless a variable or Temporal names it', async () => {
  const folder = await temporaryFolder();
  onTestFinished(() => folder.remove());
  const at = (name: string) => join(folder.path, name);
  for (const name of ['SERVICE_KEY', 'HEARTBEAT_URL', 'webhooks', 'ca.pem'])
    await writeFile(at(name), 'https://geheim.example\n');
  await mkdir(at('..data'));
  await writeFile(at('client.pem'), 'geheim\n');
  await writeFile(at('temporal.toml'), `[profile.default.tls]\nclient_key_path = "${at('client.pem')}"\n`);
  const { doubts } = readSettings({
    SECRETS_DIR: folder.path,
    WEBHOOK_SECRETS_FILE: at('webhooks'),
    TEMPORAL_CONFIG_FILE: at('temporal.toml'),
    DATABASE_URL: `postgres://u:p@h/w?sslmode=verify-full&sslrootcert=${at('ca.pem')}`,
  });
  expect(doubts).toEqual([
    `${at('SERVICE_KEY')} sets nothing: SECRETS_DIR may hold ${secretVariables.join(', ')}`,
  ]);
});
