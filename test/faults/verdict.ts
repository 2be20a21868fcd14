import { expect } from 'vitest';
import type { AuditReport } from '../../operations/audit/audit.ts';
import { until } from '../support/poll.ts';
import { isAllDone } from '../support/work-left.ts';
import { type Raised, raisedAlarms } from './alarms.ts';
import { checkLedger, type Effect, readEffects, readSent, readUndone, type Sent } from './ledger.ts';
import type { Rig } from './rig.ts';

/** The figures of a run of a fault. */
export interface Figures {
  /** Events that the service made. */
  events: number;
  acknowledged: number;
  /** Requests with events, also repeated ones, by status of the answer, or `none` without an answer. */
  answers: Readonly<Record<string, number>>;
  dead: number;
  /** The number of records that the audit compared without finding a difference. */
  compared: number;
  kills: number;
  /** How often parts ended by themselves and were restarted, as a supervisor would do it. */
  restarts: number;
  /** The alarms that were raised. */
  alarms: readonly Raised[];
}

/** Ends a run that hangs. A loaded machine delivers 25,000 events in a quarter of an hour. */
const within = { timeoutMs: 1_500_000, everyMs: 500 };

export interface VerdictOptions {
  /** How far the service's clock is advanced in one step while a retry is waiting there. */
  readonly advanceSeconds?: number;
  /** The ids of events that the test itself sent and that were answered with 2xx. */
  readonly alsoAcknowledged?: readonly string[];
  /** Whether the journal was restored from a backup, so that it lacks the events after the backup. */
  readonly restored?: boolean;
}

/**
 * Starts the parts that are down, waits until everything is delivered and done, and compares the service with
 * the warehouse: their tables must be equal, and their ledgers show that every promise was kept.
 */
export async function verdict(rig: Rig, options: VerdictOptions = {}): Promise<Figures> {
  await startAll(rig);
  await settle(rig, options);
  const sent = await readSent(rig.service.databaseUrl);
  const effects = await readEffects(rig.warehouse);
  const owed = alsoSent(sent, options.alsoAcknowledged ?? []);
  expect(checkLedger(options.restored ? onlyOf(effects, owed) : owed, effects)).toEqual({
    acknowledgedWithoutEffect: [],
    neverSent: [],
    moreThanOnce: [],
    deadWithoutReason: [],
  });
  expect(await readUndone(rig.warehouse)).toEqual([]);
  const compared = await equalTables(rig);
  const parts = [...Object.values(rig.parts), ...rig.others];
  return {
    events: (await rig.service.status()).events.total,
    acknowledged: sent.acknowledged.size,
    answers: sent.answers,
    dead: effects.filter(({ outcome }) => outcome === 'dead').length,
    compared,
    kills: parts.reduce((sum, { kills }) => sum + kills, 0),
    restarts: parts.reduce((sum, { endedByItself }) => sum + endedByItself.length, 0),
    alarms: await raisedAlarms(rig),
  };
}

/**
 * Leaves out acknowledged events that a restored journal lacks or has as missing: the service may have
 * deleted their record since, and the event of the deletion is lost.
 */
function onlyOf(effects: readonly Effect[], sent: Sent): Sent {
  const known = effects.filter(({ id, outcome }) => outcome !== 'missing' && sent.acknowledged.has(id));
  return { ...sent, acknowledged: new Set(known.map(({ id }) => id)) };
}

function alsoSent({ sent, acknowledged, answers }: Sent, ids: readonly string[]): Sent {
  return { sent: new Set([...sent, ...ids]), acknowledged: new Set([...acknowledged, ...ids]), answers };
}

/** Runs `metersync audit`, which must not find a difference, and returns the number of compared records. */
async function equalTables(rig: Rig): Promise<number> {
  const { status, stdout, stderr } = await rig.run(['audit', '--settle', '0s', '--json']);
  if (stdout === '') throw new Error(`metersync audit ended with status ${status}: ${stderr}`);
  const { compared, differences, examples } = JSON.parse(stdout) as AuditReport;
  expect({ status, differences, examples }).toEqual({ status: 0, differences: 0, examples: [] });
  expect(compared).toBeGreaterThan(0);
  return compared;
}

export async function startAll({ parts }: Rig): Promise<void> {
  await Promise.all([parts.postgres.start(), parts.temporal.start()]);
  await Promise.all([parts.receiver.start(), parts.worker.start()]);
}

/** Waits step by step. Each step waits for work that the previous step may have started. */
export async function settle(
  rig: Rig,
  { advanceSeconds = 400, restored }: VerdictOptions = {},
): Promise<void> {
  const { service, warehouse } = rig;
  await until(
    'the service has delivered everything',
    async () => {
      const { quiet, deliveries } = await service.status();
      // Failed deliveries are due again in seconds or minutes. The service's clock skips this time.
      if (!quiet && deliveries.inFlight === 0) await service.advance(advanceSeconds);
      return quiet;
    },
    within,
  );
  const { acknowledged } = restored ? { acknowledged: [] } : await readSent(service.databaseUrl);
  await until(
    'every acknowledged event is in the journal',
    async () => {
      const known = new Set((await readEffects(warehouse)).map(({ id }) => id));
      return [...acknowledged].every((id) => known.has(id));
    },
    within,
  );
  await until('nothing runs and nothing is pending', () => isAllDone(rig, ['sweep', 'watch']), within);
}
