import type { Client } from '@temporalio/client';
import { explainRefusal, findCompany } from '../activities/backfill/named-companies.ts';
import { startBackfill } from '../app/backfill.ts';
import { startSweepOf, workerIsPolling } from '../app/temporal/client.ts';
import { type FailureCode, parkingCodes } from '../contract/failures.ts';
import type { taskQueues } from '../contract/names.ts';
import { counted } from '../contract/words.ts';
import { failedParts } from '../db/backfill/runs.ts';
import type { Database } from '../db/connection/connect.ts';
import { openGates } from '../db/queue/gates.ts';
import { reviveFailed, unknownCode } from '../db/queue/postpone.ts';
import { isConfirmedCompany } from '../db/records/companies.ts';
import type { ServiceClient } from '../service/client.ts';
import { NotBegun } from './recorded.ts';

/** @throws NotBegun when no worker polls a queue: the requested work would wait forever */
export async function requireWorker(client: Client, queue: keyof typeof taskQueues): Promise<void> {
  if (await workerIsPolling(client, queue)) return;
  throw new NotBegun('no worker is running: run metersync start (or metersync worker) first');
}

/** Returns why a company that a person named cannot be read: the service does not have it; or undefined. */
export async function whyNotRead(
  db: Database,
  service: Pick<ServiceClient, 'has' | 'page'>,
  companyId: string,
): Promise<string | undefined> {
  if (await isConfirmedCompany(db, companyId)) return undefined;
  return explainRefusal(companyId, await findCompany(service, companyId));
}

interface ResumeReport {
  readonly events: number;
  /** The backfill that reads the failed parts again; null if no part had failed. */
  readonly runId: string | null;
  /** The number of its companies; null for all. */
  readonly companies: number | null;
}

/** Retries work parked for the failure, or any, at once, and backfills parts that runs could not read. */
export async function resumeParked(options: {
  client: Client;
  db: Database;
  code?: FailureCode | undefined;
}): Promise<ResumeReport> {
  const { client, db, code } = options;
  const codes = code === undefined ? [...parkingCodes, unknownCode] : [code];
  const failed = await failedParts(db, codes);
  const events = (await openGates(db, codes)) + (await reviveFailed(db, codes));
  await startSweepOf(client)();
  if (failed.everything) return { events, runId: await startBackfill(client), companies: null };
  if (failed.companies.length === 0) return { events, runId: null, companies: 0 };
  const runId = await startBackfill(client, { db, companies: failed.companies });
  return { events, runId, companies: failed.companies.length };
}

export function describeResumed({ events, runId, companies }: ResumeReport): string[] {
  if (events === 0 && runId === null) return ['Nothing is parked.'];
  const lines = [`${counted(events, 'event')} ${events === 1 ? 'is' : 'are'} due again`];
  if (runId !== null) {
    lines.push(
      `backfill ${runId} started: ${companies === null ? 'all companies' : counted(companies, 'company', 'companies')}`,
    );
  }
  return lines;
}
