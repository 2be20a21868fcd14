import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { inject, onTestFinished } from 'vitest';
import { readRunning } from '../../embedded/folder.ts';
import { identify, isRunning, type ProcessIdentity } from '../../embedded/process.ts';

/** A program that runs a stack in its own folder. */
export interface OwnerProcess {
  dir: string;
  child: ChildProcess;
  /** The servers that were running when the program was ready. */
  postgres: ProcessIdentity;
  temporal: ProcessIdentity;
  /** Resolves when the program prints this line. */
  printed(line: string): Promise<void>;
}

/** Makes a folder that is removed after the test; call it before starting anything that must end first. */
export function temporaryFolder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'metersync-embedded-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

/** Copies data of Postgres into an empty folder, so that a start there does not have to create it. */
export function putData(dir: string): void {
  const fresh = inject('freshPostgres');
  if (fresh === undefined) return;
  // Postgres may run as another user, who has to reach its data.
  chmodSync(dir, 0o711);
  execFileSync('cp', ['-a', fresh, join(dir, 'postgres')]);
}

/** Makes a temporary folder with data of Postgres. */
export function folderWithData(): string {
  const dir = temporaryFolder();
  putData(dir);
  return dir;
}

/** Starts `owner.ts` in its own process group, with `env` added; returns when its stack is ready. */
export async function startOwner(
  dir: string,
  env: Readonly<Record<string, string>> = {},
): Promise<OwnerProcess> {
  const script = join(import.meta.dirname, 'owner.ts');
  const child = spawn(process.execPath, [script, dir], {
    detached: true,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout });
  const seen: string[] = [];
  lines.on('line', (line) => seen.push(line));
  const printed = async (line: string) => {
    while (!seen.includes(line)) {
      if (child.exitCode !== null) throw new Error(`The owner ended before it printed ${line}`);
      await Promise.race([once(lines, 'line'), once(child, 'exit')]);
    }
  };
  await printed('ready');
  const running = readRunning(dir);
  if (!running?.servers.postgres || !running.servers.temporal) throw new Error('The owner runs no servers.');
  onTestFinished(() => endWhatIsLeft([identify(child.pid ?? 0), ...Object.values(running.servers)]));
  return { dir, child, ...running.servers, printed } as OwnerProcess;
}

/** Ends the program's processes that a failed test left. */
function endWhatIsLeft(processes: readonly (ProcessIdentity | undefined)[]): void {
  for (const left of processes) {
    if (left !== undefined && isRunning(left)) process.kill(left.pid, 'SIGKILL');
  }
}
