import { rmSync } from 'node:fs';
import { homeElsewhere } from './postgres-home.ts';
import { readRunning } from './running.ts';
import { endServers, serversOf } from './servers.ts';

/**
 * Removes a data folder, also the data of Postgres to which it leads. Ends servers of a guardian that was
 * killed first: without the folder nobody would find them.
 */
export async function eraseFolder(dir: string): Promise<void> {
  const left = readRunning(dir);
  if (left !== undefined) await endServers(serversOf(dir, left));
  for (const folder of [homeElsewhere(dir), dir]) {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  }
}
