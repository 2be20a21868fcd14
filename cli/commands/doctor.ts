import { randomUUID } from 'node:crypto';
import type { Check } from '../../app/doctor/check.ts';
import { examine } from '../../app/doctor/doctor.ts';
import { secretsOf } from '../../app/receiver-part.ts';
import { openContext } from '../context.ts';
import { print, printJson } from '../print.ts';

/** Long enough for a worker that is busy. */
const probeArrivesWithinMs = 15_000;

/** `metersync doctor`: checks what a sync rests on; status 1 when a check fails. */
export async function doctor(options: { json?: boolean }): Promise<void> {
  const context = await openContext({ temporal: true, service: true, quiet: true });
  try {
    const { settings, stack, service, sandbox, insecure, log } = context;
    const checks = await examine({
      ...{ settings, service, log, databaseUrl: stack.databaseUrl, temporal: stack.temporal },
      insecure,
      standIn: sandbox !== undefined,
      secrets: () => secretsOf(settings.webhooks, log),
      now: Date.now,
      probeId: `metersync-probe-${randomUUID()}`,
      probeArrivesWithinMs,
    });
    const failed = checks.filter(({ state }) => state === 'fail').length;
    if (options.json) printJson({ ok: failed === 0, checks });
    else print(...describe(checks));
    if (failed > 0) process.exitCode = 1;
  } finally {
    await context.stop();
  }
}

function describe(checks: readonly Check[]): string[] {
  const width = Math.max(...checks.map(({ name }) => name.length));
  const lines = checks.flatMap(({ name, state, saw, todo }) => [
    `${state.padEnd(11)}  ${name.padEnd(width)}  ${saw}`,
    ...(todo === null ? [] : [`${''.padEnd(15 + width)}What to do: ${todo}`]),
  ]);
  const count = (wanted: Check['state']) => checks.filter(({ state }) => state === wanted).length;
  const sums = (['ok', 'warn', 'fail', 'not checked'] as const).map((state) => `${count(state)} ${state}`);
  return [...lines, sums.join(', ')];
}
