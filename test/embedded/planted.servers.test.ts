import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { identify, isRunning, type ProcessIdentity } from '../../embedded/processes.ts';
import { runningFile } from '../../embedded/running.ts';
import { startEmbedded } from '../../embedded/start.ts';
import { folderWithData, temporaryFolder } from './owner-process.ts';

const nobody = 65_534;
const root = process.getuid?.() === 0;

async function start(dir: string) {
  const stack = await startEmbedded({ dir, postgres: true, temporal: false });
  onTestFinished(stack.stop);
  return stack;
}

/** Starts an unrelated program of the user. */
async function innocent(args: readonly string[] = []): Promise<ProcessIdentity> {
  const code = "setInterval(() => {}, 1000); console.log('runs')";
  const child: ChildProcess = spawn(process.execPath, ['-e', code, '--', ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  if (child.stdout !== null) await once(child.stdout, 'data');
  const identity = identify(child.pid ?? 0);
  if (identity === undefined) throw new Error('it ended');
  return identity;
}

const gone: ProcessIdentity = { pid: process.pid, started: 'in another life' };

function plant(dir: string, servers: Record<string, ProcessIdentity>, mode = 0o600): void {
  mkdirSync(dir, { recursive: true });
  const running = { state: 'running', owner: gone, guardian: gone, servers, addresses: {} };
  writeFileSync(runningFile(dir), JSON.stringify(running), { mode });
}

test('a start ends only those processes named in its folder that run on the data there', async () => {
  const dir = temporaryFolder();
  const processes = [
    await innocent(),
    await innocent([join(dir, 'temporal.db'), join(dir, 'postgres'), 'end']),
  ];
  const [postgres, temporal] = processes as [ProcessIdentity, ProcessIdentity];
  plant(dir, { postgres, temporal });
  expect((await start(dir)).owned).toBe(true);
  expect(processes.map(isRunning)).toEqual([true, true]);
});

test('files that other users may have written there are ignored', async () => {
  /** It looks like a server on the data there, so the file alone decides. */
  const planted = async (disguise: (file: string) => void) => {
    const dir = folderWithData();
    const temporal = await innocent(['--db-filename', join(dir, 'temporal.db'), 'end']);
    plant(dir, { temporal });
    disguise(runningFile(dir));
    return { dir, temporal };
  };
  const ours = await planted(() => {});
  const theirs = [
    await planted((file) => chmodSync(file, 0o644)),
    await planted((file) => chmodSync(file, 0o660)),
    await planted((file) => {
      renameSync(file, `${file}.elsewhere`);
      symlinkSync(`${file}.elsewhere`, file);
    }),
    // Only root can change the owner of a file.
    ...(root ? [await planted((file) => chownSync(file, nobody, nobody))] : []),
  ];
  for (const { dir, temporal } of theirs) {
    await start(dir);
    expect(isRunning(temporal)).toBe(true);
    expect(statSync(runningFile(dir)).mode & 0o777).toBe(0o600);
  }
  await start(ours.dir);
  expect(isRunning(ours.temporal)).toBe(false);
});

test('a start does not attach to a stack on other data, even if a file in its folder names it', async () => {
  const [theirs, ours] = [folderWithData(), folderWithData()];
  const foreign = await start(theirs);
  writeFileSync(runningFile(ours), readFileSync(runningFile(theirs)), { mode: 0o600 });
  await expect(start(ours)).rejects.toThrow('was copied or moved');
  // The start ignores a copy that others can read.
  chmodSync(runningFile(ours), 0o644);
  const stack = await start(ours);
  expect(stack.owned).toBe(true);
  expect(stack.postgres?.superuserUrl('postgres')).not.toBe(foreign.postgres?.superuserUrl('postgres'));
});

test('a folder that others can write is made private; one of another user is refused', async () => {
  const open = temporaryFolder();
  chmodSync(open, 0o777);
  await start(open);
  expect(statSync(open).mode & 0o022).toBe(0);
  // Without root only folders of the system belong to another user.
  const theirs = root ? temporaryFolder() : '/usr';
  if (root) chownSync(theirs, nobody, nobody);
  await expect(start(theirs)).rejects.toThrow(/cannot be (used|written) by .*(belongs to user 65534|EACCES)/);
});
