import type { ClientBase, Pool, PoolClient } from 'pg';
import { inTransaction } from '../database.ts';
import { type DeliveryDelay, type OutboxSettings, type WrittenEvent, writeEvents } from '../events.ts';
import { createRandom } from '../generate/random.ts';
import { type Micros, type ServiceClock, toText } from '../time.ts';
import {
  addAccount,
  assignSites,
  createConnection,
  rotateCredentials,
  touchConnection,
  updateConnection,
  validateConnection,
} from './connection.ts';
import {
  createDocument,
  deleteDocument,
  linkDocument,
  reprocessDocument,
  supersedeDocument,
  touchDocument,
} from './document.ts';
import { syncIntervals } from './intervals.ts';
import { drawChanges, type RandomType } from './random.ts';
import type { Change, ChangeOf } from './schema.ts';
import {
  type ChangeContext,
  readWorkingSet,
  take,
  unused,
  type WorkingSet,
  writeWorkingSet,
} from './working-set.ts';

interface ChangeServiceDependencies {
  readonly pool: Pool;
  readonly clock: ServiceClock;
  readonly delays: () => readonly DeliveryDelay[];
  readonly newId: () => string;
  readonly newMessageId: () => string;
  /** Last day of the generated history. First intervals begin there, or 48 before now if that is earlier. */
  readonly until: string;
  /** Called after changes were committed. */
  readonly committed: (applied: Applied) => void;
}

interface RandomAsked {
  readonly count: number;
  readonly seed: number;
  readonly types: readonly RandomType[] | undefined;
}

interface RandomResult {
  readonly changes: number;
  readonly changesByType: Readonly<Record<string, number>>;
  readonly events: number;
  readonly byType: Readonly<Record<string, number>>;
}

/** The only way in which records change. Batches run in turn, so events are numbered in commit order. */
export interface ChangeService {
  apply(changes: readonly Change[]): Promise<Applied>;
  /** Draws and applies valid changes until there are `count`. */
  random(asked: RandomAsked): Promise<RandomResult>;
}

/** How many changes are drawn and written together. */
const randomBatch = 500;

export function createChangeService(dependencies: ChangeServiceDependencies): ChangeService {
  const { pool, clock, delays, newId, newMessageId, until, committed } = dependencies;
  const inTurn = createTurns();

  const applyIn = (client: PoolClient, changes: readonly Change[]) =>
    applyChanges(client, changes, { now: clock.now(), newId, newMessageId, delays: delays() });

  const run = async (work: (client: PoolClient) => Promise<Applied>): Promise<Applied> => {
    const applied = await inTurn(() => inTransaction(pool, work));
    committed(applied);
    return applied;
  };

  return {
    apply: (changes) => run((client) => applyIn(client, changes)),
    async random({ count, seed, types }) {
      const random = createRandom('random', seed);
      const changesByType: Record<string, number> = {};
      const byType: Record<string, number> = {};
      let changes = 0;
      let events = 0;
      while (changes < count) {
        const size = Math.min(randomBatch, count - changes);
        const applied = await run(async (client) =>
          applyIn(
            client,
            await drawChanges(client, random, size, types, { now: toText(clock.now()), until }),
          ),
        );
        if (applied.changes.length === 0) break;
        changes += applied.changes.length;
        events += applied.events.length;
        for (const { type } of applied.changes) changesByType[type] = (changesByType[type] ?? 0) + 1;
        for (const { type } of applied.events) byType[type] = (byType[type] ?? 0) + 1;
      }
      return { changes, changesByType, events, byType };
    },
  };
}

/** Runs pieces of work one after another, even if an earlier one failed. */
function createTurns(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = last.then(work, work);
    last = mine.catch(() => undefined);
    return mine;
  };
}

interface ApplySettings extends Omit<OutboxSettings, 'now'> {
  readonly now: Micros;
  readonly newId: () => string;
}

interface AppliedChange {
  readonly type: string;
  /** The id of the record that was created or changed. */
  readonly id: string;
}

interface Applied {
  readonly changes: readonly AppliedChange[];
  readonly events: readonly WrittenEvent[];
  /** The companies whose records were written. */
  readonly companyIds: ReadonlySet<string>;
}

/**
 * Applies changes in their order and writes their events in the caller's transaction (service.md 6). Interval
 * syncs are applied after all others, so that they find the meters that the batch adds.
 * @throws Problem if one change cannot be applied; then no change is applied
 */
async function applyChanges(
  client: ClientBase,
  changes: readonly Change[],
  settings: ApplySettings,
): Promise<Applied> {
  const set = await readWorkingSet(client, changes);
  const context: ChangeContext = { set, now: settings.now, newId: settings.newId };
  const applied = changes.map((change) => ({ type: change.type, id: applyOne(context, change) }));
  await writeWorkingSet(client, set);
  const syncs = changes.filter((change) => change.type === 'syncIntervals');
  const synced = await syncIntervals(client, context, syncs);
  const events = await writeEvents(client, set.events, { ...settings, now: toText(settings.now) });
  return { changes: applied, events, companyIds: new Set([...writtenCompanies(set), ...synced]) };
}

function writtenCompanies(set: WorkingSet): string[] {
  return [
    ...set.newCompanies.map(({ company }) => company.id),
    ...[...set.changedConnections].map((id) => take(set.connections, 'connection', id).facts.company.id),
    ...[...set.changedDocuments].map((id) => take(set.documents, 'document', id).company.id),
  ];
}

function applyOne(context: ChangeContext, change: Change): string {
  switch (change.type) {
    case 'createCompany':
      return createCompany(context, change);
    case 'createConnection':
      return createConnection(context, change);
    case 'addAccount':
      return addAccount(context, change);
    case 'createDocument':
      return createDocument(context, change);
    case 'syncIntervals':
      return change.meterId;
    case 'noop':
      return existing(context, change.resource, change.id);
    case 'touch':
      if (change.resource === 'connection') touchConnection(context, change.id);
      else touchDocument(context, change.id);
      return change.id;
    case 'reprocessDocument':
      reprocessDocument(context, change);
      return change.documentId;
    case 'supersedeDocument':
      return supersedeDocument(context, change);
    case 'linkDocument':
      linkDocument(context, change);
      return change.documentId;
    case 'deleteDocument':
      deleteDocument(context, change);
      return change.documentId;
    default:
      return applyToConnection(context, change);
  }
}

function applyToConnection(
  context: ChangeContext,
  change: Extract<
    Change,
    { type: 'updateConnection' | 'validateConnection' | 'assignSites' | 'rotateCredentials' }
  >,
): string {
  if (change.type === 'updateConnection') updateConnection(context, change);
  else if (change.type === 'validateConnection') validateConnection(context, change);
  else if (change.type === 'assignSites') assignSites(context, change);
  else rotateCredentials(context, change);
  return change.connectionId;
}

function existing({ set }: ChangeContext, resource: 'connection' | 'document', id: string): string {
  return resource === 'connection'
    ? take(set.connections, resource, id).id
    : take(set.documents, resource, id).id;
}

/** Creates a company with one site, without an event. Returns its id. */
function createCompany({ set, newId }: ChangeContext, change: ChangeOf<'createCompany'>): string {
  const id = unused(set.companies, 'company', change.id ?? newId());
  const company = {
    externalId: change.externalId ?? `C-${id.slice(0, 8)}`,
    id,
    name: change.name ?? `Company ${id.slice(0, 8)}`,
    publicId: newId(),
  };
  const site = { id: newId(), companyId: id, name: 'Head office' };
  set.companies.set(id, company);
  set.sites.set(site.id, site);
  set.newCompanies.push({
    organizationId: change.organizationId,
    company,
    facts: {
      users: [],
      dataCollectionStartDate: '2025-01-01',
      isDemandEnabled: false,
      isImpliedMeteringEnabled: false,
      impliedMeteringFraction: '0.0000',
      isBasicIdentifierMappingEnabled: true,
      isLowAccuracyModeEnabled: false,
    },
  });
  set.newSites.push({
    ...site,
    timeZone: 'America/New_York',
    facts: {
      dataCollectionStopDate: null,
      externalId: null,
      address: '1 Main St, New York, NY 10001',
      path: ['US', 'NY', 'New York'],
      occupancyPercent: null,
    },
  });
  return id;
}

/** Makes plausible changes continuously, as at a real service. */
export interface Live {
  /** 0 stops the changes. */
  setRate(perMinute: number): void;
  rate(): number;
  stop(): Promise<void>;
}

/** How many changes may wait. If the machine is too slow for the rate, further changes are left out. */
const waitingMax = 50;

export function createLive(changes: ChangeService, seed: number, report: (error: Error) => void): Live {
  const random = createRandom('live', seed);
  let timer: NodeJS.Timeout | undefined;
  let perMinute = 0;
  const waiting = new Set<Promise<unknown>>();

  const tick = () => {
    if (waiting.size >= waitingMax) return;
    const change = changes
      .random({ count: 1, seed: random.word(), types: undefined })
      .catch(report)
      .finally(() => waiting.delete(change));
    waiting.add(change);
  };

  return {
    setRate(asked) {
      clearInterval(timer);
      perMinute = asked;
      if (asked > 0) timer = setInterval(tick, 60_000 / asked);
    },
    rate: () => perMinute,
    async stop() {
      clearInterval(timer);
      await Promise.all(waiting);
    },
  };
}
