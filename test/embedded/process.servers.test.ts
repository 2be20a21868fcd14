import { execFileSync } from 'node:child_process';
import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { readRunning } from '../../embedded/folder.ts';
import { folderWithData, startOwner, temporaryFolder } from './owner-process.ts';

const secrets = {
  SERVICE_API_KEY: 'key-that-nobody-may-see',
  WEBHOOK_SECRETS: 'whsec_secret-that-nobody-may-see',
  TEMPORAL_CODEC_KEYS: 'k1:codec-key-that-nobody-may-see',
  DATABASE_URL: 'postgres://nobody:password-that-nobody-may-see@127.0.0.1/none',
  AWS_SECRET_ACCESS_KEY: 'of-another-program-that-nobody-may-see',
};

/** Reads the arguments of a process from the kernel; empty when it has ended. */
function argumentsOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}

test('no server, and no program that a server can run, has a secret of metersync in its environment or arguments', async () => {
  const owner = await startOwner(folderWithData(), secrets);
  const address = readRunning(owner.dir)?.addresses.postgres;
  const client = new pg.Client({ host: '127.0.0.1', database: 'postgres', ...address });
  await client.connect();
  onTestFinished(() => client.end());
  await client.query('create table o (line text)');
  await client.query("copy o from program 'env' with (format csv, delimiter e'\\x01', quote e'\\x02')");
  const { rows } = await client.query<{ line: string }>('select line from o');
  const ofPostgres = rows.map(({ line }) => line).join('\n');
  expect(ofPostgres).toContain('PATH=');
  const environments = [ofPostgres];
  if (process.platform === 'linux') {
    for (const { pid } of [owner.postgres, owner.temporal]) {
      environments.push(readFileSync(`/proc/${pid}/environ`, 'utf8').replaceAll('\0', '\n'));
    }
    expect(environments.slice(1).every((text) => text.includes('PATH='))).toBe(true);
    // The program itself has all secrets.
    const ofOwner = readFileSync(`/proc/${owner.child.pid}/environ`, 'utf8');
    for (const secret of Object.values(secrets)) expect(ofOwner).toContain(secret);
    const running = readdirSync('/proc').filter((entry) => /^\d+$/.test(entry));
    expect(running.filter((pid) => argumentsOf(pid).includes('nobody-may-see'))).toEqual([]);
  }
  for (const text of environments) {
    expect(text).not.toContain('nobody-may-see');
    for (const name of Object.keys(secrets)) expect(text).not.toContain(`${name}=`);
  }
});

test('an installer gets the variables for its registry, and no secret of metersync', () => {
  const folder = temporaryFolder();
  const said = join(folder, 'environment');
  const python = join(folder, 'python3');
  writeFileSync(python, `#!/bin/sh\nenv > ${said}\nexit 1\n`);
  chmodSync(python, 0o755);
  const toReach = {
    https_proxy: 'http://127.0.0.1:9',
    NO_PROXY: 'localhost',
    SSL_CERT_FILE: '/none',
    PIP_INDEX_URL: 'http://127.0.0.1:9',
    UV_INDEX_URL: 'http://127.0.0.1:9',
  };
  // The search runs in its own process, because the environment of this process also belongs to other tests.
  const module = join(import.meta.dirname, '../../embedded/temporal.ts');
  const search = { searchPath: '', cacheDir: join(folder, 'cache'), downloadFrom: 'http://127.0.0.1:9' };
  const code = `const { findTemporal } = await import(${JSON.stringify(module)});
    await findTemporal({ ...${JSON.stringify(search)}, log() {} }).catch(() => {})`;
  execFileSync(process.execPath, ['--input-type=module', '-e', code], {
    env: { ...secrets, ...toReach, PATH: `${folder}:/usr/bin:/bin`, HOME: folder },
  });
  const text = readFileSync(said, 'utf8');
  for (const [name, value] of Object.entries(toReach)) expect(text).toContain(`${name}=${value}\n`);
  expect(text).not.toContain('nobody-may-see');
});
