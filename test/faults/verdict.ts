import { expect } from 'vitest';
import type { AuditReport } from '../../operations/audit/audit.ts';
import { until } from '../support/poll.ts';
import { isAllDone } from '../support/work-left.ts';
import { type Raised, raisedAlarms } from './alarms.ts';
import { checkLedger, type Effect, readEffects, readSent, readUndone, type Sent } from './ledger.ts';
import type { Rig } from './rig.ts';

/** The figures of a run, for docs/reliability.md. */
export interface Figures {
  /** Events that the service made. */
  events: number;
  acknowledged: number;
  /** Requests with events, including repeated ones, by the status of the answer; `none` if there was none. */
  answers: Readonly<Record<string, number>>;
  dead: number;
  /** Records that the audit compared; it found no difference. */
  compared: number;
  kills: number;
  /** Parts that ended by themselves and were restarted, as by a supervisor. */
  restarts: number;
  /** The alarms that it raised. */
  alarms: readonly Raised[];
}

/** Ends a hung run: the state decides otherwise. A loaded machine delivers 25,000 events in a quarter of an hour. */
const within = { timeoutMs: 1_500_000, everyMs: 500 };

export interface Options {
  /** How far the service's clock is advanced in one step while a retry is waiting there. */
  readonly advanceSeconds?: number;
  /** Ids of events that the test itself sent, and that were answered with 2xx. */
  readonly alsoAcknowledged?: readonly string[];
  /** Whether the journal was restored from a backup, which lacks the events after it. */
  readonly restored?: boolean;
}

/**
 * Starts what is down, lets the service deliver everything and waits until no work is left. Then it compares
 * both sides: equal tables, and ledgers that keep every promise.
 */
export async function verdict(rig: Rig, options: Options = {}): Promise<Figures> {
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
  const parts = Object.values(rig.parts);
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
 * Leaves out acknowledged events that a restored journal lacks. Events that were waiting in it are missing if
 * the service has deleted their record since, because the event of the deletion is lost and a read finds
 * nothing.
 */
function onlyOf(effects: readonly Effect[], sent: Sent): Sent {
  const known = effects.filter(({ id, outcome }) => outcome !== 'missing' && sent.acknowledged.has(id));
  return { ...sent, acknowledged: new Set(known.map(({ id }) => id)) };
}

function alsoSent({ sent, acknowledged, answers }: Sent, ids: readonly string[]): Sent {
  return { sent: new Set([...sent, ...ids]), acknowledged: new Set([...acknowledged, ...ids]), answers };
}

/** Runs `metersync audit`, which must find no difference; returns the number of compared records. */
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

/** Waits step by step; each covers work that the previous one may have started. */
export async function settle(rig: Rig, { advanceSeconds = 400, restored }: Options = {}): Promise<void> {
  const { service, warehouse } = rig;
  await until(
    'the service has delivered everything',
    async () => {
      const { quiet, deliveries } = await service.status();
      // Failed deliveries are due again in seconds or minutes, which are skipped.
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
  await until('nothing runs and nothing is pending', () => isAllDone(rig, ['catchUp', 'watch']), within);
}
