import { execFileSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { readSecretFiles, secretVariables } from '../../app/settings/secret-files.ts';
import { readSettings, SettingsError } from '../../app/settings/settings.ts';
import { connectOptions } from '../../app/temporal/place.ts';
import { temporaryFolder } from '../support/folder.ts';
import { forFile } from '../support/for-file.ts';

const folder = await forFile(temporaryFolder());

/** Writes a file of secrets; returns its path. */
async function file(name: string, text: string): Promise<string> {
  const path = join(folder.path, name);
  await writeFile(path, text);
  return path;
}

function problemsOf(read: () => unknown): readonly string[] {
  try {
    read();
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
  return [];
}

describe('a secret in a file', () => {
  test.each(['', '\n', '\r\n'])('is read without its last line break %j', async (end) => {
    const env = {
      SERVICE_URL: 'https://service.example/v2.2',
      SERVICE_API_KEY_FILE: await file('key', `key-1${end}`),
      DATABASE_URL_FILE: await file('url', `postgres://u:p@h/w${end}`),
      HEARTBEAT_URL_FILE: await file('beat', `https://hc.example/ping${end}`),
    };
    expect(readSettings(env)).toMatchObject({
      service: { apiKey: 'key-1' },
      databaseUrl: 'postgres://u:p@h/w',
      notify: { heartbeatUrl: 'https://hc.example/ping' },
    });
  });

  test.each(secretVariables)(
    'is possible for %s, and an empty variable next to it is unset',
    async (name) => {
      const path = await file('one', ' a b \n');
      expect(readSecretFiles({ [`${name}_FILE`]: path, [name]: '', OTHER: 'x' })).toEqual({
        given: { [name]: ' a b ', OTHER: 'x' },
        problems: [],
      });
      expect(readSecretFiles({ [`${name}_FILE`]: '', [name]: 'x' }).given).toEqual({ [name]: 'x' });
    },
  );

  test.each(['NOTIFY_URL', 'NOTIFY_SECRET', 'HEARTBEAT_URL'])(
    'may be missing for %s: an empty file means that it is not set, also next to the variable',
    async (name) => {
      for (const text of ['', '\n']) {
        const path = await file('optional', text);
        expect(readSecretFiles({ [`${name}_FILE`]: path })).toEqual({ given: {}, problems: [] });
        expect(readSecretFiles({ [`${name}_FILE`]: path, [name]: 'x' })).toEqual({
          given: { [name]: 'x' },
          problems: [],
        });
      }
    },
  );

  test('can be the API key of Temporal', async () => {
    vi.stubEnv('TEMPORAL_API_KEY_FILE', await file('temporal', 'key-2\n'));
    expect(connectOptions({}).connectionOptions).toMatchObject({ apiKey: 'key-2', tls: true });
    vi.stubEnv('TEMPORAL_API_KEY', 'key-3');
    expect(problemsOf(() => connectOptions({}))).toEqual([
      'TEMPORAL_API_KEY and TEMPORAL_API_KEY_FILE are both set: remove one of them',
    ]);
  });
});

describe('a wrong file is reported by its path, without its content', () => {
  const problem = (path: string) => problemsOf(() => readSettings({ DATABASE_URL_FILE: path }));

  test('if it does not exist, is empty, has several lines, or cannot be read', async () => {
    const one = 'DATABASE_URL_FILE has to name a file of one line:';
    expect(problem('/nowhere/url')).toEqual([`${one} /nowhere/url is not there`]);
    for (const text of ['', '\n', '\r\n']) {
      const path = await file('empty', text);
      expect(problem(path)).toEqual([`${one} ${path} is empty`]);
    }
    const several = await file('several', 'geheim\nmore\n');
    expect(problem(several)).toEqual([`${one} ${several} has several lines`]);
    const directory = join(folder.path, 'directory');
    await mkdir(directory);
    expect(problem(directory)).toEqual([`${one} ${directory} cannot be read: EISDIR`]);
    const pipe = join(folder.path, 'pipe');
    execFileSync('mkfifo', [pipe]);
    expect(problem(pipe)).toEqual([`${one} ${pipe} cannot be read: it is a pipe or a device, not a file`]);
  });

  test('if its secret is wrong', async () => {
    const problems = problem(await file('wrong', 'mysql://u:geheim@h\n'));
    expect(problems).toEqual([expect.stringMatching(/^DATABASE_URL has to be a URL/)]);
    expect(problems[0]).not.toContain('geheim');
  });

  test('if the variable itself is set, too', async () => {
    const path = await file('both', 'x\n');
    const env = { DATABASE_URL: 'postgres://u:p@h/w', DATABASE_URL_FILE: path, WEBHOOK_SECRETS_FILE: path };
    const secrets = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
    expect(problemsOf(() => readSettings({ ...env, WEBHOOK_SECRETS: secrets }))).toEqual([
      'DATABASE_URL and DATABASE_URL_FILE are both set: remove one of them',
      'WEBHOOK_SECRETS and WEBHOOK_SECRETS_FILE are both set: remove one of them',
    ]);
  });
});
