import { once } from 'node:events';
import { existsSync, rmSync } from 'node:fs';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { eraseFolder } from '../../embedded/erase.ts';
import { isRunning } from '../../embedded/processes.ts';
import { readRunning, runningFile } from '../../embedded/running.ts';
import { startEmbedded } from '../../embedded/start.ts';
import { until } from '../support/poll.ts';
import { projectBinDir } from '../support/stack.ts';
import { folderWithData, type OwnerProcess, startOwner } from './owner-process.ts';

const everythingGone = ({ guardian, postgres, temporal }: OwnerProcess) =>
  until('guardian, Postgres and Temporal are gone', () => ![guardian, postgres, temporal].some(isRunning));

test('no process is left after kill -9 of the program', async () => {
  const owner = await startOwner(folderWithData());
  owner.child.kill('SIGKILL');
  await everythingGone(owner);
  expect(existsSync(runningFile(owner.dir))).toBe(false);
});

test('no process is left after the program exits without stopping the stack', async () => {
  const owner = await startOwner(folderWithData());
  owner.child.kill('SIGUSR2');
  await once(owner.child, 'exit');
  await everythingGone(owner);
});

test('Ctrl-C reaches only the program; the servers answer until it has drained', async () => {
  const owner = await startOwner(folderWithData());
  process.kill(-(owner.child.pid ?? 0), 'SIGINT');
  await owner.printed('drained');
  await once(owner.child, 'exit');
  expect(owner.child.exitCode).toBe(0);
  expect([owner.guardian, owner.postgres, owner.temporal].filter(isRunning)).toEqual([]);
});

test('the next start stops servers whose guardian and program were both killed', async () => {
  const owner = await startOwner(folderWithData());
  process.kill(owner.guardian.pid, 'SIGKILL');
  await until('the guardian is gone', () => !isRunning(owner.guardian));
  owner.child.kill('SIGKILL');
  await once(owner.child, 'exit');
  expect([owner.postgres, owner.temporal].every(isRunning)).toBe(true);

  const log: string[] = [];
  const stack = await startEmbedded({
    dir: owner.dir,
    postgres: true,
    temporal: true,
    binDir: projectBinDir(),
    log: (line) => log.push(line),
  });
  expect([owner.postgres, owner.temporal].filter(isRunning)).toEqual([]);
  expect(log).toContain('stopping the servers of an earlier run that was killed');
  onTestFinished(stack.stop);
  expect(stack.owned).toBe(true);
});

test('a program whose guardian was killed still stops its servers', async () => {
  const owner = await startOwner(folderWithData());
  process.kill(owner.guardian.pid, 'SIGKILL');
  await until('the guardian is gone', () => !isRunning(owner.guardian));
  process.kill(owner.child.pid ?? 0, 'SIGINT');
  await owner.printed('drained');
  await once(owner.child, 'exit');
  await everythingGone(owner);
});

test('a server that dies is started again at the same address, with its data', async () => {
  const dir = folderWithData();
  const log: string[] = [];
  const stack = await startEmbedded({ dir, postgres: true, temporal: false, log: (line) => log.push(line) });
  onTestFinished(stack.stop);
  const url = (await stack.postgres?.ensureDatabase('kept')) ?? '';
  await query(url, 'create table t as select 7 as n');
  const first = readRunning(dir)?.servers.postgres;
  process.kill(first?.pid ?? 0, 'SIGKILL');
  const rows = await until('Postgres runs as another process and answers', async () => {
    const now = readRunning(dir)?.servers.postgres;
    return now?.pid !== first?.pid && query(url, 'select n from t');
  });
  expect(rows).toEqual([{ n: 7 }]);
  expect(log.join('\n')).toContain('postgres ended by itself (SIGKILL) and is started again');
});

test('erasing a data folder ends the servers whose guardian was killed', async () => {
  const dir = folderWithData();
  const stack = await startEmbedded({ dir, postgres: true, temporal: false });
  onTestFinished(stack.stop);
  const running = readRunning(dir);
  process.kill(running?.guardian.pid ?? 0, 'SIGKILL');
  await eraseFolder(dir);
  expect(Object.values(running?.servers ?? {}).map(isRunning)).toEqual([false]);
  expect(existsSync(dir)).toBe(false);
});

test('no process is left when the data folder was deleted while the stack ran', async () => {
  const owner = await startOwner(folderWithData());
  rmSync(owner.dir, { recursive: true, force: true });
  owner.child.kill('SIGKILL');
  await everythingGone(owner);
});

async function query(connectionString: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString });
  // A lost connection fails the query.
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}
