import { randomUUID } from 'node:crypto';
import { secretsOf } from '../../app/receiver-part.ts';
import { doctorPolicy } from '../../contract/retry-policy.ts';
import { headline, verdictStatus } from '../../health/verdict.ts';
import type { Check } from '../../operations/doctor/check.ts';
import { examine } from '../../operations/doctor/doctor.ts';
import { withContext } from '../context.ts';
import { print, printJson } from '../print.ts';
import { paragraph } from '../terminal.ts';

/** `metersync doctor`: prints a verdict and its checks; status 1 unless all is in sync or catching up. */
export async function doctor(options: { json?: boolean }): Promise<void> {
  const need = { temporal: 'if running', service: 'if known', quiet: true, existing: true } as const;
  await withContext(need, async ({ settings, stack, service, insecure, log }) => {
    const { checks, verdict } = await examine({
      settings,
      service,
      log,
      databaseUrl: stack.databaseUrl,
      insecure,
      temporal: stack.hasTemporal ? stack.temporal : undefined,
      standIn: settings.service.url === undefined,
      secrets: () => secretsOf(settings.webhooks, log),
      now: Date.now,
      probeId: `metersync-probe-${randomUUID()}`,
      probeArrivesWithinMs: doctorPolicy.probeArrivesMs,
    });
    const ok = verdictStatus[verdict.word] === 0;
    if (options.json) printJson({ ok, verdict: { word: verdict.word, says: headline(verdict) }, checks });
    else print(headline(verdict), ...describe(checks));
    if (!ok) process.exitCode = 1;
  });
}

function describe(checks: readonly Check[]): string[] {
  const width = Math.max(...checks.map(({ name }) => name.length));
  const lines = checks.flatMap(({ name, state, saw, todo }) => [
    ...paragraph(`${state.padEnd(11)}  ${name.padEnd(width)}  `, saw),
    ...(todo === null ? [] : paragraph(''.padEnd(15 + width), `What to do: ${todo}`)),
  ]);
  const count = (wanted: Check['state']) => checks.filter(({ state }) => state === wanted).length;
  const sums = (['ok', 'warn', 'fail', 'not checked'] as const).map((state) => `${count(state)} ${state}`);
  return [...lines, sums.join(', ')];
}
