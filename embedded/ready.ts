import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { bounds } from './bounds.ts';
import { EmbeddedError } from './failure.ts';
import { postgresAnswers } from './postgres.ts';
import type { Addresses } from './running.ts';
import type { ServerCommand } from './servers.ts';
import { temporalAnswers } from './temporal.ts';

/** Whether every server at these addresses answers. */
export async function allAnswer({ postgres, temporal }: Addresses): Promise<boolean> {
  const answers = await Promise.all([
    postgres === undefined || postgresAnswers(postgres),
    temporal === undefined || temporalAnswers(temporal),
  ]);
  return answers.every((answer) => answer);
}

/**
 * Waits until the servers that were just started answer.
 * @param ended how servers ended, by name
 * @throws EmbeddedError with the end of a server's log when it does not answer or is in `ended`
 */
export async function waitUntilReady(
  addresses: Addresses,
  servers: readonly ServerCommand[],
  ended: ReadonlyMap<string, string>,
): Promise<void> {
  const deadline = Date.now() + bounds.serverReadyMs;
  await Promise.all(
    servers.map(async (server) => {
      const address = { [server.name]: addresses[server.name] };
      for (;;) {
        const answers = await allAnswer(address);
        // First: where ours has ended, another server that took its port may answer.
        const how = ended.get(server.name) ?? ended.get('guardian');
        if (how !== undefined) throw failed(server, `ended at once (${how})`);
        if (answers) return;
        if (Date.now() > deadline)
          throw failed(server, `did not answer within ${bounds.serverReadyMs / 1000} s`);
        await delay(bounds.pollMs);
      }
    }),
  );
}

function failed({ name, command, logFile }: ServerCommand, how: string): EmbeddedError {
  let lines: string[] = [];
  try {
    lines = readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-8);
  } catch {
    // It ended before it had a log.
  }
  const end = lines.map((line) => `  ${line}`).join('\n');
  return new EmbeddedError(`The ${name} server (${command}) ${how}. The end of its log, ${logFile}:\n${end}`);
}
