import { type Client, isGrpcServiceError } from '@temporalio/client';
import type { LookResult } from '../activities/watch.ts';
import { askAgain } from '../app/process/running.ts';
import { requireZone } from '../app/schema.ts';
import type { Settings } from '../app/settings/settings.ts';
import { usesSandbox } from '../app/stack.ts';
import { TemporalAway } from '../app/temporal/arrival.ts';
import { readPollers, withClient } from '../app/temporal/client.ts';
import { certificateExpiry, type TemporalPlace } from '../app/temporal/place.ts';
import { readScheduleHealth } from '../app/temporal/schedules.ts';
import { outageOf, placeOf } from '../app/warehouse.ts';
import { type RunKind, runKinds, scheduleIds, taskQueues, workflowNames } from '../contract/names.ts';
import { consolePolicy, recordPolicy, serverWaits } from '../contract/retry-policy.ts';
import { describeFit, fitOf, type SchemaVersions } from '../contract/schema-versions.ts';
import { type Database, withTimeout } from '../db/connection/connect.ts';
import { readServer, readsOnly } from '../db/connection/session.ts';
import { readSchemaVersions } from '../db/migrate/migrations.ts';
import { readHealth } from '../db/read/health.ts';
import type { Away, Health, TemporalHealth } from '../health/measured.ts';
import { watchIsLate } from '../health/server-findings.ts';
import { remember } from '../receiver/clock.ts';

/** Whose health is read. */
interface Deployment {
  readonly settings: Settings;
  readonly databaseUrl: string;
  /** Undefined if no Temporal is configured and none runs here. */
  readonly temporal: TemporalPlace | undefined;
  /** How long to wait for the first answer of Postgres or Temporal. */
  readonly answerMs?: number | undefined;
  /** Whether to ask a server again, for longer, that did not answer in time. */
  readonly again?: boolean | undefined;
  /** Reads the time that ages are judged by; Postgres's clock if absent. Never rejects. */
  readonly now?: (db: Database) => Promise<number>;
}

/**
 * Makes the function that reads the health of a deployment. It never rejects: a server that cannot be reached
 * counts as away. It judges the certificate for Temporal as it is now, because a process keeps the one that it
 * began with.
 */
export function healthOf(of: Deployment): (db: Database) => Promise<Health> {
  const expiresAt = expiryOf(of.temporal);
  return async (db) => {
    const [ofWarehouse, ofTemporal] = await Promise.all([
      readWarehouse(of, db),
      readTemporal(of, db, expiresAt),
    ]);
    const { warehouse, schema } = ofWarehouse;
    const { temporal } = ofTemporal;
    const slow = [
      ...(ofWarehouse.late ? (['Postgres'] as const) : []),
      ...(ofTemporal.late ? (['Temporal'] as const) : []),
    ];
    const sandbox = usesSandbox(of.settings);
    const health = { warehouse, schema, temporal, sandbox, ...(slow.length === 0 ? {} : { slow }) };
    if ('away' in warehouse || 'away' in temporal || of.temporal === undefined) return health;
    if (!watchIsLate(warehouse.watch.lookedSecondsAgo)) return health;
    const foundAway = await askPlace(of.temporal, readFoundAway).catch(() => false);
    return { ...health, temporal: { ...temporal, foundAway } };
  };
}

/** Reads Postgres's clock, or without an answer the clock of this process, which may be wrong. */
async function readNow(db: Database, answerMs: number): Promise<number> {
  const nowMs = await withTimeout(readServer(db), answerMs).then((server) => server.nowMs, Date.now);
  return Number.isNaN(nowMs) ? Date.now() : nowMs;
}

async function readWarehouse(
  { settings, databaseUrl, answerMs = serverWaits.healthInAllMs, again = false }: Deployment,
  db: Database,
): Promise<WarehouseRead> {
  const embedded = settings.databaseUrl === undefined;
  const { silenceHours } = settings;
  let schema: SchemaVersions | null = null;
  let answered = false;
  const first = (withinMs: number) => withTimeout(readsOnly(db), withinMs);
  const read = async ({
    isReadOnly,
    late,
  }: {
    isReadOnly: boolean;
    late: boolean;
  }): Promise<WarehouseRead> => {
    answered = true;
    if (isReadOnly) {
      const away = `${placeOf(databaseUrl, embedded)} does not accept writes: it is a standby, or default_transaction_read_only is on`;
      const todo =
        'Set DATABASE_URL to the primary, or find out why this server is read-only: its disk may be full.';
      return { warehouse: { away, todo }, schema, late };
    }
    schema = await readSchemaVersions(db);
    const unfit = unfitSchema(schema);
    if (unfit !== undefined) return { warehouse: unfit, schema, late };
    const zone = await requireZone({ db }, settings.service.timeZone).catch((error: Error) => error);
    if (zone === undefined) return { warehouse: await readHealth(db, { silenceHours }), schema, late };
    const todo = 'Connect to Postgres itself, not to a pooler.';
    return { warehouse: { away: zone.message, todo }, schema, late };
  };
  try {
    if (!again)
      return await withTimeout(first(answerMs).then((isReadOnly) => read({ isReadOnly, late: false })));
    const { answer: isReadOnly, late } = await askAgain(first, answerMs);
    return await withTimeout(read({ isReadOnly, late }));
  } catch (error) {
    return { warehouse: outageOf(databaseUrl, error, { embedded, answered }), schema, late: false };
  }
}

type WarehouseRead = Pick<Health, 'warehouse' | 'schema'> & { readonly late: boolean };

function unfitSchema(versions: SchemaVersions): Away | undefined {
  if (['same', 'ahead'].includes(fitOf(versions))) return undefined;
  const { saw, todo } = describeFit(versions);
  return { away: saw, todo };
}

async function readTemporal(
  {
    settings,
    temporal: place,
    answerMs = serverWaits.healthWithinMs,
    again = false,
    now = (server) => readNow(server, answerMs),
  }: Deployment,
  db: Database,
  expiresAt: string | null,
): Promise<{ readonly temporal: TemporalHealth | Away; readonly late: boolean }> {
  if (place === undefined)
    return {
      temporal: {
        away: 'no Temporal is running here, so no worker is running either',
        todo: 'Run metersync start, or set TEMPORAL_ADDRESS to the Temporal of your workers.',
        nothingRuns: true,
      },
      late: false,
    };
  const wanted = runKinds.filter((kind) => settings.schedules[kind] !== undefined);
  const nowMs = now(db);
  const ask = (withinMs: number) =>
    askPlace(place, async (client) => await askTemporal(client, await nowMs, wanted), withinMs);
  try {
    const { answer, late } = again
      ? await askAgain(ask, answerMs)
      : { answer: await ask(answerMs), late: false };
    const certificate = certificateOf(expiresAt, await nowMs);
    return { temporal: { ...answer, foundAway: false, certificate }, late };
  } catch (error) {
    const todo = error instanceof TemporalAway ? error.todo : 'Correct the settings that it names.';
    return { temporal: { away: (error as Error).message, todo }, late: false };
  }
}

/** Asks Temporal within the time of a health page. @throws TemporalAway without a first answer within `answerMs` */
async function askPlace<T>(
  place: TemporalPlace,
  ask: (client: Client) => Promise<T>,
  answerMs: number = serverWaits.healthWithinMs,
): Promise<T> {
  return await withClient(
    place,
    async (client) => {
      const asked = client.withDeadline(Date.now() + serverWaits.healthWithinMs, () => ask(client));
      return await asked.catch((error: unknown) => Promise.reject(new TemporalAway(place, error)));
    },
    answerMs,
  );
}

/** Reads whether the last watch that ended found Postgres away. */
async function readFoundAway(client: Client): Promise<boolean> {
  const { info } = await client.schedule.getHandle(scheduleIds.watch).describe();
  for (const { action } of info.recentActions.toReversed()) {
    const run = client.workflow.getHandle(action.workflow.workflowId);
    const { status } = await run.describe();
    if (status.name === 'RUNNING') continue;
    return status.name === 'COMPLETED' && ((await run.result()) as LookResult).absence !== null;
  }
  return false;
}

/** Also null if the configuration cannot be read, because each reading of Temporal's health then says so. */
function expiryOf(place: TemporalPlace | undefined): string | null {
  try {
    return place === undefined ? null : certificateExpiry(place);
  } catch {
    return null;
  }
}

const certificateOf = (expiresAt: string | null, now: number): TemporalHealth['certificate'] =>
  expiresAt === null ? null : { expiresAt, secondsLeft: (Date.parse(expiresAt) - now) / 1_000 };

/** Reads which queues no worker polls, the state of the schedules, and what runs. */
async function askTemporal(
  client: Client,
  now: number,
  wanted: readonly RunKind[],
): Promise<Omit<TemporalHealth, 'certificate' | 'foundAway'>> {
  const queues = Object.keys(taskQueues) as (keyof typeof taskQueues)[];
  const [pollers, schedules, groups, stuckWorkflows] = await Promise.all([
    Promise.all(queues.map((queue) => readPollers(client, queue))),
    Promise.all(runKinds.map((kind) => readScheduleHealth(client, kind))),
    countGroups(client, now),
    countRunning(client, 'TemporalReportedProblems is not null').catch(unlessUnknown),
  ]);
  const ofEvents = pollers[queues.indexOf('events')];
  return {
    idle: queues.filter((_, at) => !pollers[at]?.polled),
    absent: ofEvents?.absent ?? null,
    schedules: schedules.map((schedule) => ({ ...schedule, isWanted: wanted.includes(schedule.name) })),
    ...groups,
    stuckWorkflows,
  };
}

type Groups = Pick<TemporalHealth, 'openGroups' | 'lateGroups' | 'stalledGroups'>;

/** Counts groups by how long they wait. Usually there is none, and one request is enough. */
async function countGroups(client: Client, now: number): Promise<Groups> {
  const groups = `WorkflowType = '${workflowNames.applyEvents}'`;
  const openGroups = await countRunning(client, groups);
  if (openGroups === 0) return { openGroups, lateGroups: 0, stalledGroups: 0 };
  const olderThan = (seconds: number) =>
    countRunning(client, `${groups} and StartTime < '${new Date(now - seconds * 1_000).toISOString()}'`);
  const [lateGroups, stalledGroups] = await Promise.all([
    olderThan(recordPolicy.lagSeconds),
    olderThan(recordPolicy.waitMaxSeconds),
  ]);
  return { openGroups, lateGroups, stalledGroups };
}

const countRunning = async (client: Client, which: string): Promise<number> =>
  (await client.workflow.count(`ExecutionStatus = 'Running' and ${which}`)).count;

/** gRPC's number of INVALID_ARGUMENT. */
const invalidArgument = 3;

/** Returns null for older servers, which cannot search by this attribute. */
function unlessUnknown(error: unknown): null {
  if (isGrpcServiceError(error) && Number(error.code) === invalidArgument) return null;
  throw error;
}

/** Makes the function that reads a deployment's health for pages: one reading serves all for some seconds. */
export const rememberHealth = (read: () => Promise<Health>): (() => Promise<Health>) =>
  remember(read, consolePolicy.healthForMs, () => performance.now());
