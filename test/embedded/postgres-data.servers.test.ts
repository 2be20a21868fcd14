import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { readRunning, runningFile, writeRunning } from '../../embedded/folder.ts';
import { reachableBinaries } from '../../embedded/process.ts';
import { type Embedded, eraseFolder, startEmbedded } from '../../embedded/start.ts';
import { folderWithData, temporaryFolder } from './owner-process.ts';

async function startPostgres(dir: string): Promise<Embedded> {
  const stack = await startEmbedded({ dir, postgres: true, temporal: false });
  onTestFinished(stack.stop);
  return stack;
}

test('creates data in its own folder, even if an initdb that outlived an earlier start still writes', async () => {
  const dir = temporaryFolder();
  const late = ['postgres.new', 'postgres.new-killed'].map((name) => join(dir, name));
  for (const folder of late) await mkdir(folder);
  const writes = setInterval(() => {
    for (const folder of late) {
      try {
        writeFileSync(join(folder, 'late'), '');
      } catch {
        // The start erases these folders between two writes.
      }
    }
  }, 1);
  onTestFinished(() => clearInterval(writes));
  expect(await answer(await startPostgres(dir))).toBe(1);
  expect(existsSync(join(dir, 'postgres.new-killed'))).toBe(false);
});

test('explains data of another major version in the words of Postgres', async () => {
  const dir = folderWithData();
  await (await startPostgres(dir)).stop();
  writeFileSync(join(dir, 'postgres', 'PG_VERSION'), '15\n');
  await expect(startPostgres(dir)).rejects.toThrow(/initialized by PostgreSQL version 15.*version 18/);
});

test('leaves a folder that is not Postgres data unchanged, and names what it lacks', async () => {
  const dir = temporaryFolder();
  await mkdir(join(dir, 'postgres'));
  writeFileSync(join(dir, 'postgres', 'novel.txt'), 'Call me Ishmael.');
  await expect(startPostgres(dir)).rejects.toThrow(join(dir, 'postgres', 'metersync-password'));
  expect(readdirSync(join(dir, 'postgres'))).toEqual(['novel.txt']);
});

test('leaves data that another Postgres uses unchanged, and names its process', async () => {
  const dir = folderWithData();
  const stack = await startPostgres(dir);
  const running = readRunning(dir);
  // The next start assumes that somebody started this Postgres by hand.
  rmSync(runningFile(dir));
  await expect(startPostgres(dir)).rejects.toThrow(`PID ${running?.servers.postgres?.pid}`);
  expect(await answer(stack)).toBe(1);
});

test('ignores the lock of a Postgres that was killed if another program has its pid', async () => {
  const dir = folderWithData();
  const first = await startPostgres(dir);
  const running = readRunning(dir);
  if (running === undefined) throw new Error('nothing runs there');
  await first.stop();
  const { pid } = process;
  writeFileSync(join(dir, 'postgres', 'postmaster.pid'), `${pid}\n${join(dir, 'postgres')}\n`);
  const owner = { pid, started: 'in another life' };
  writeRunning(dir, { ...running, owner, servers: { postgres: owner } });
  expect(await answer(await startPostgres(dir))).toBe(1);
});

test('keeps data in a folder that only its user can enter, and erases it with its folder', async () => {
  const closed = mkdtempSync(join(temporaryFolder(), 'closed-'));
  const dir = join(mkdtempSync(join(closed, 'closed-')), 'data');
  const first = await startPostgres(dir);
  const url = await first.postgres?.ensureDatabase('kept');
  await first.stop();
  const second = await startPostgres(dir);
  expect(await second.postgres?.ensureDatabase('kept')).toBe(url);
  expect(await answer(second)).toBe(1);
  await second.stop();
  const data = realpathSync(join(dir, 'postgres'));
  // Root runs Postgres as another user, who cannot enter the folder: the data is elsewhere.
  expect(data.startsWith(realpathSync(closed))).toBe(process.getuid?.() !== 0);
  await eraseFolder(dir);
  expect([data, dirname(data), dir].filter(existsSync)).toEqual([]);
});

test('copies programs, as root, from a folder that only root can enter', () => {
  if (process.getuid?.() !== 0) return;
  const [closed, open] = [mkdtempSync(join(temporaryFolder(), 'closed-')), temporaryFolder()];
  const postgres = join(closed, 'native/bin/postgres');
  mkdirSync(dirname(postgres), { recursive: true });
  const account = { uid: 65_534, gid: 65_534 };
  for (const release of ['one', 'the next']) {
    writeFileSync(postgres, release);
    const found = reachableBinaries({ postgres, initdb: postgres }, account, open);
    expect(found.postgres).toBe(join(open, 'programs/bin/postgres'));
    expect(readFileSync(found.postgres, 'utf8')).toBe(release);
  }
});

async function answer(stack: Embedded): Promise<unknown> {
  const client = new pg.Client({ connectionString: stack.postgres?.superuserUrl('postgres') });
  await client.connect();
  try {
    return (await client.query('select 1 as n')).rows[0].n;
  } finally {
    await client.end();
  }
}
