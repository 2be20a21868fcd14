import { expect } from 'vitest';
import { readStatus } from '../../db/read/status.ts';
import { until } from '../support/poll.ts';
import { checkLedger, readEffects, readSent } from './ledger.ts';
import type { Rig } from './rig.ts';

/** What was found in the end, for docs/reliability.md. */
export interface Figures {
  /** Events that the service made. */
  events: number;
  acknowledged: number;
  /** Requests with events, repeated ones included, by the status of the answer; `none` where there was none. */
  answers: Readonly<Record<string, number>>;
  dead: number;
  /** Records that the audit compared; it found no difference. */
  compared: number;
  kills: number;
  /** Parts that ended by themselves and were started again, as a supervisor does. */
  restarts: number;
}

/** Nothing moves on for so long: state decides, the bound only ends a run that hangs. */
const within = { timeoutMs: 600_000, everyMs: 500 };

/**
 * Starts whatever is down, lets the service deliver everything, waits until nothing is left to do, and then holds
 * both sides against each other: equal tables, and ledgers that keep every promise.
 */
export async function verdict(rig: Rig): Promise<Figures> {
  await startAll(rig);
  await settle(rig);
  const [sent, effects] = [await readSent(rig.service.databaseUrl), await readEffects(rig.warehouse)];
  expect(checkLedger(sent, effects)).toEqual({
    acknowledgedWithoutEffect: [],
    neverSent: [],
    moreThanOnce: [],
    deadWithoutReason: [],
  });
  const audit = await rig.run(['audit', '--json']);
  const report = JSON.parse(audit.stdout) as { compared: number; differences: number; examples: unknown[] };
  expect(
    { status: audit.status, differences: report.differences, examples: report.examples },
    audit.stderr,
  ).toEqual({
    status: 0,
    differences: 0,
    examples: [],
  });
  expect(report.compared).toBeGreaterThan(0);
  const parts = Object.values(rig.parts);
  return {
    events: (await rig.service.status()).events.total,
    acknowledged: sent.acknowledged.size,
    answers: sent.answers,
    dead: effects.filter(({ outcome }) => outcome === 'dead').length,
    compared: report.compared,
    kills: parts.reduce((sum, { kills }) => sum + kills, 0),
    restarts: parts.reduce((sum, { endedByItself }) => sum + endedByItself.length, 0),
  };
}

export async function startAll({ parts }: Rig): Promise<void> {
  await Promise.all([parts.postgres.start(), parts.temporal.start()]);
  await Promise.all([parts.receiver.start(), parts.worker.start()]);
}

/** In this order, each step covers what the one before may have set off. */
export async function settle(rig: Rig): Promise<void> {
  const { service, warehouse } = rig;
  await until(
    'the service has delivered everything',
    async () => {
      const { quiet, deliveries } = await service.status();
      // What failed is due again in seconds or minutes; they pass at once.
      if (!quiet && deliveries.inFlight === 0) await service.advance(400);
      return quiet;
    },
    within,
  );
  const { acknowledged } = await readSent(service.databaseUrl);
  await until(
    'every acknowledged event is in the journal',
    async () => {
      const known = new Set((await readEffects(warehouse)).map(({ id }) => id));
      return [...acknowledged].every((id) => known.has(id));
    },
    within,
  );
  await until('nothing runs and nothing is pending', () => nothingIsLeft(rig), within);
}

async function nothingIsLeft({ client, warehouse }: Rig): Promise<boolean> {
  const open = async () =>
    (await client.workflow.count(`ExecutionStatus = 'Running' and WorkflowType != 'catchUp'`)).count;
  if ((await open()) > 0) return false;
  const { events, backfills } = await readStatus(warehouse.db);
  return events.pending === 0 && backfills.running === 0 && (await open()) === 0;
}
