import type { Client } from '@temporalio/client';
import { startBackfill } from '../app/backfill.ts';
import { wakeOf } from '../app/temporal.ts';
import { type FailureCode, parkingCodes } from '../contract/failures.ts';
import { catchUpKinds } from '../contract/names.ts';
import { strangerCode } from '../db/backfill/strangers.ts';
import { failedParts, reviveParked } from '../db/catch-up/parking.ts';
import type { Database } from '../db/connect.ts';

export interface ResumeReport {
  /** Events that are due at once. */
  readonly events: number;
  /** The backfill that reads again what failed; null when nothing had. */
  readonly runId: string | null;
  /** Its companies; null for all. */
  readonly companies: number | null;
}

/** Tries again at once what waits for one of these failures, and starts a backfill of what the last one could not read. */
export async function resumeParked(options: {
  client: Client;
  db: Database;
  code?: FailureCode | undefined;
}): Promise<ResumeReport> {
  const { client, db, code } = options;
  const codes = code === undefined ? [...parkingCodes, strangerCode] : [code];
  const failed = await failedParts(db, codes);
  const { events } = await reviveParked(db, codes, { over: false });
  const wake = wakeOf(client);
  await Promise.all(catchUpKinds.map(wake));
  if (failed.everything) return { events, runId: await startBackfill(client), companies: null };
  if (failed.companies.length === 0) return { events, runId: null, companies: 0 };
  const runId = await startBackfill(client, { db, companies: failed.companies });
  return { events, runId, companies: failed.companies.length };
}
