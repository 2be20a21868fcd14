import { connectClient } from '../../app/temporal.ts';
import type { FailureCode } from '../../contract/failures.ts';
import { counted } from '../../contract/words.ts';
import { type ResumeReport, resumeParked } from '../../operations/resume.ts';
import { print, printJson } from '../print.ts';
import { withWarehouse } from '../warehouse.ts';

/** `metersync resume`: tries parked work again at once, as its cause is gone. */
export async function resume(options: { code?: FailureCode; json?: boolean }): Promise<void> {
  await withWarehouse({ temporal: true }, async ({ db, context }) => {
    const { client, close } = await connectClient(context.stack.temporal);
    try {
      const report = await resumeParked({ client, db, code: options.code });
      if (options.json) printJson(report);
      else print(...describe(report));
    } finally {
      await close();
    }
  });
}

function describe({ events, runId, companies }: ResumeReport): string[] {
  if (events === 0 && runId === null) return ['Nothing is parked.'];
  const lines = [`${counted(events, 'event')} ${events === 1 ? 'is' : 'are'} due again`];
  if (runId !== null) {
    lines.push(
      `backfill ${runId} started: ${companies === null ? 'all companies' : counted(companies, 'company', 'companies')}`,
    );
  }
  return lines;
}
