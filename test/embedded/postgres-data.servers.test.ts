import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { reachableBinaries } from '../../embedded/as-root.ts';
import { readRunning, runningFile } from '../../embedded/running.ts';
import { type Embedded, eraseFolder, startEmbedded } from '../../embedded/start.ts';
import { folderWithData, temporaryFolder } from './owner-process.ts';

async function startPostgres(dir: string): Promise<Embedded> {
  const stack = await startEmbedded({ dir, postgres: true, temporal: false });
  onTestFinished(stack.stop);
  return stack;
}

test('creates data in a folder of its own next to an initdb that outlived its start', async () => {
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

test('explains data of another major version', async () => {
  const dir = folderWithData();
  await (await startPostgres(dir)).stop();
  writeFileSync(join(dir, 'postgres', 'PG_VERSION'), '15\n');
  await expect(startPostgres(dir)).rejects.toThrow(
    /written by Postgres 15, and this is Postgres 18.*\n.*move/,
  );
});

test('leaves a folder that is not Postgres data unchanged, and explains it', async () => {
  const dir = temporaryFolder();
  await mkdir(join(dir, 'postgres'));
  writeFileSync(join(dir, 'postgres', 'novel.txt'), 'Call me Ishmael.');
  await expect(startPostgres(dir)).rejects.toThrow(/is not a data folder of Postgres.*move it away/);
});

test('leaves data that another Postgres uses unchanged, and explains it', async () => {
  const dir = folderWithData();
  const stack = await startPostgres(dir);
  const running = readRunning(dir);
  // The next start assumes that somebody started this Postgres by hand.
  rmSync(runningFile(dir));
  await expect(startPostgres(dir)).rejects.toThrow(
    `Another Postgres, process ${running?.servers.postgres?.pid}`,
  );
  expect(await answer(stack)).toBe(1);
});

test('ignores a pid file left by a crash if another program has its pid', async () => {
  const dir = folderWithData();
  await (await startPostgres(dir)).stop();
  writeFileSync(join(dir, 'postgres', 'postmaster.pid'), `${process.pid}\n${join(dir, 'postgres')}\n`);
  expect(await answer(await startPostgres(dir))).toBe(1);
});

test('ignores a pid file left by a crash if a Postgres with other data has its pid', async () => {
  const [dir, other] = [folderWithData(), folderWithData()];
  await startPostgres(other);
  const { pid = 0 } = readRunning(other)?.servers.postgres ?? {};
  writeFileSync(join(dir, 'postgres', 'postmaster.pid'), `${pid}\n${join(dir, 'postgres')}\n`);
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
  // Root runs Postgres as another user, who cannot enter.
  expect(data.startsWith(realpathSync(closed))).toBe(process.getuid?.() !== 0);
  await eraseFolder(dir);
  expect([data, dirname(data), dir].filter(existsSync)).toEqual([]);
});

test('copies programs once, as root, from a folder that only root can enter', async () => {
  if (process.getuid?.() !== 0) return;
  const closed = mkdtempSync(join(temporaryFolder(), 'closed-'));
  const version = `of-a-test-${process.pid}`;
  const postgres = join(closed, 'native/bin/postgres');
  mkdirSync(dirname(postgres), { recursive: true });
  writeFileSync(postgres, '');
  writeFileSync(join(closed, 'package.json'), JSON.stringify({ version }));
  const account = { uid: 65_534, gid: 65_534 };
  const copy = `/var/cache/metersync/postgres-${version}`;
  onTestFinished(() => rmSync(copy, { recursive: true }));
  const binaries = { postgres, initdb: postgres };
  expect(reachableBinaries(binaries, account).postgres).toBe(join(copy, 'bin/postgres'));
  rmSync(postgres);
  expect(reachableBinaries(binaries, account).postgres).toBe(join(copy, 'bin/postgres'));
  expect(readdirSync(dirname(copy)).filter((name) => name.includes('.new-'))).toEqual([]);
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
