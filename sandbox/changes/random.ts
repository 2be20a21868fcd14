import type { ClientBase } from 'pg';
import type { Random } from '../generate/random.ts';
import { connectionStatuses } from '../records/company.ts';
import { addDays, fromText, secondsToMicros, toText } from '../time.ts';
import type { Change, ChangeType } from './schema.ts';

/** The longest period of a generated bill. */
const longestPeriodDays = 33;

/** How often each type is drawn. Superseding bills, touches and no-ops are drawn only on request. */
const weights = {
  createDocument: 24,
  reprocessDocument: 22,
  deleteDocument: 5,
  syncIntervals: 15,
  validateConnection: 12,
  updateConnection: 9,
  rotateCredentials: 5,
  assignSites: 4,
  createConnection: 4,
  supersedeDocument: 0,
  touch: 0,
  noop: 0,
} as const satisfies Partial<Record<ChangeType, number>>;

/** How many connections a company gets for each site, unless a request names the type `createConnection`. */
const connectionsPerSite = 4;

export type RandomType = keyof typeof weights;

export const randomTypes = Object.keys(weights) as RandomType[];

interface ConnectionSample {
  readonly id: string;
  readonly companyId: string;
  readonly status: string;
  readonly sites: string[];
  readonly hasMeters: boolean;
  /** Whether its company may get another connection. */
  readonly hasRoom: boolean;
}

interface DocumentSample {
  readonly id: string;
  readonly meters: string[];
}

interface MeterSample {
  readonly id: string;
  readonly datasourceType: string;
  readonly seconds: number | null;
  readonly units: string | null;
  readonly last: string | null;
  /** Its last bill, and the last day of that bill. */
  readonly documentId: string | null;
  readonly billedUntil: string | null;
}

interface Samples {
  readonly connections: ConnectionSample[];
  readonly documents: DocumentSample[];
  readonly meters: MeterSample[];
}

/** When changes happen: the present time, and the last day of the generated history. */
interface Times {
  readonly now: string;
  readonly until: string;
}

/**
 * Draws up to `count` valid changes, and at least one if possible. If no types are named, the last bill is
 * corrected instead of a new bill for an open period, and only last bills are deleted.
 */
export async function drawChanges(
  client: ClientBase,
  random: Random,
  count: number,
  types: readonly RandomType[] | undefined,
  times: Times,
): Promise<Change[]> {
  const drawn = Array.from({ length: count }, () => drawType(random, types));
  const samples = await sample(client, random, count);
  const before: Drawn = { statuses: new Map(), documents: new Set() };
  const changes: Change[] = [];
  for (const [index, type] of drawn.entries()) {
    const draw = types === undefined ? drawFreely : compose;
    const change = draw(random, type, index, samples, before, times);
    if (change !== undefined) changes.push(change);
  }
  return changes;
}

function drawType(random: Random, types: readonly RandomType[] | undefined): RandomType {
  if (types !== undefined) return random.pick(types);
  const total = Object.values(weights).reduce<number>((sum, weight) => sum + weight, 0);
  let left = random.int(1, total);
  for (const type of randomTypes) {
    left -= weights[type];
    if (left <= 0) return type;
  }
  return 'createDocument';
}

/** Draws a change if no types are named. Such changes keep the data plausible even after years. */
function drawFreely(...given: Parameters<typeof compose>): Change | undefined {
  const [random, type, index, { connections, meters }, drawn, { now }] = given;
  const connection = connections[index % connections.length];
  switch (type) {
    case 'createDocument':
    case 'deleteDocument':
      return drawBill(random, type, meters[index % meters.length], drawn, now.slice(0, 10));
    case 'createConnection':
    case 'updateConnection':
      return connection && drawConnection(random, type, connection, drawn);
    default:
      return compose(...given);
  }
}

/** The changes drawn so far in one batch, so that a later change of the same batch stays valid. */
interface Drawn {
  readonly statuses: Map<string, string>;
  readonly documents: Set<string>;
}

function compose(
  random: Random,
  type: RandomType,
  index: number,
  samples: Samples,
  drawn: Drawn,
  times: Times,
): Change | undefined {
  const connection = samples.connections[index % samples.connections.length];
  const document = samples.documents[index % samples.documents.length];
  const meter = samples.meters[index % samples.meters.length];
  const plain = type === 'touch' || type === 'noop';
  if (type === 'createDocument') return meter && { type, meterId: meter.id };
  if (type === 'syncIntervals') return meter && drawSync(random, meter, times);
  const ofDocument =
    type === 'reprocessDocument' || type === 'supersedeDocument' || type === 'deleteDocument';
  if (ofDocument || (plain && random.chance(0.5))) {
    return document && drawForDocument(random, type, document, drawn);
  }
  return connection && drawForConnection(random, type, connection, drawn.statuses);
}

/** Draws the next bill once its period is over, and until then corrects or deletes only the last bill. */
function drawBill(
  random: Random,
  type: 'createDocument' | 'deleteDocument',
  meter: MeterSample | undefined,
  drawn: Drawn,
  today: string,
): Change | undefined {
  if (meter === undefined) return undefined;
  const { id, documentId, billedUntil } = meter;
  const last = documentId === null ? undefined : { id: documentId, meters: [] };
  if (type === 'deleteDocument') return last && drawForDocument(random, type, last, drawn);
  const isDue = billedUntil === null || addDays(billedUntil, 1 + longestPeriodDays) < today;
  if (isDue || last === undefined) return { type, meterId: id };
  return drawForDocument(random, 'reprocessDocument', last, drawn);
}

/** Adds an account to a connection without meters. A company with enough connections gets no further one. */
function drawConnection(
  random: Random,
  type: 'createConnection' | 'updateConnection',
  connection: ConnectionSample,
  { statuses }: Drawn,
): Change | undefined {
  const { id: connectionId, sites, hasMeters, hasRoom } = connection;
  if (type === 'createConnection' && hasRoom) return drawForConnection(random, type, connection, statuses);
  const [siteId] = sites;
  if (hasMeters || siteId === undefined)
    return drawForConnection(random, 'updateConnection', connection, statuses);
  const ids = { id: random.uuid(), meterId: random.uuid() };
  return { type: 'addAccount', ...ids, connectionId, siteId, datasourceType: 'ELECTRICITY' };
}

/** Returns undefined if this batch has drawn the document before, because it may be deleted by then. */
function drawForDocument(
  random: Random,
  type: RandomType,
  document: DocumentSample,
  drawn: Drawn,
): Change | undefined {
  if (drawn.documents.has(document.id)) return undefined;
  drawn.documents.add(document.id);
  if (type === 'deleteDocument' || type === 'supersedeDocument') return { type, documentId: document.id };
  if (type === 'reprocessDocument') return drawReprocess(random, document);
  return { type: type === 'noop' ? type : 'touch', resource: 'document', id: document.id };
}

function drawReprocess(random: Random, document: DocumentSample): Change {
  const type = 'reprocessDocument';
  if (random.chance(0.2) && document.meters.length > 0) {
    const meterId = random.pick(document.meters);
    return { type, documentId: document.id, reason: 'meterAssignment', meterId };
  }
  return { type, documentId: document.id, reason: random.chance(0.5) ? 'correction' : 'usageUpdate' };
}

function drawForConnection(
  random: Random,
  type: RandomType,
  { id, companyId, status, sites }: ConnectionSample,
  statuses: Map<string, string>,
): Change | undefined {
  switch (type) {
    case 'createConnection':
      return { type, companyId };
    case 'validateConnection': {
      const before = statuses.get(id) ?? status;
      const others = connectionStatuses.filter((candidate) => candidate !== before);
      const next = before !== 'CONNECTED' && random.chance(0.6) ? 'CONNECTED' : random.pick(others);
      statuses.set(id, next);
      return { type, connectionId: id, status: next };
    }
    case 'updateConnection':
      return { type, connectionId: id, externalId: `K-${random.digits(9)}` };
    case 'rotateCredentials':
      return { type, connectionId: id, password: random.uuid() };
    case 'assignSites':
      return { type, connectionId: id, siteIds: sites.filter(() => random.chance(0.6)) };
    case 'touch':
    case 'noop':
      return { type, resource: 'connection', id };
    default:
      return undefined;
  }
}

/** Draws a range of slots up to the meter's last reading, after it, or both. All slots are over by now. */
function drawSync(random: Random, meter: MeterSample, { now, until }: Times): Change {
  const granularitySeconds = meter.seconds ?? 3600;
  const usageUnits = meter.units ?? (meter.datasourceType === 'ELECTRICITY' ? 'kWh' : 'CCF');
  const slot = secondsToMicros(granularitySeconds);
  const over = (fromText(now) / slot) * slot;
  const late = over - slot * 48n;
  const first = fromText(until) < late ? fromText(until) : late;
  const after = meter.last === null ? first : fromText(meter.last) + slot;
  const room = Number((over - after) / slot);
  const wanted = meter.last === null ? 'insert' : random.pick(['insert', 'update', 'both'] as const);
  const mode = room > 0 ? wanted : 'update';
  const back = mode === 'insert' ? 0 : random.int(4, 48);
  const forth = mode === 'update' ? 0 : Math.min(random.int(4, 48), room);
  return {
    type: 'syncIntervals',
    meterId: meter.id,
    start: toText(after - slot * BigInt(back)),
    end: toText(after + slot * BigInt(forth)),
    mode,
    granularitySeconds,
    usageUnits,
    quality: random.chance(0.9) ? 'ACTUAL' : 'ESTIMATED',
  };
}

/** Reads the records whose ids follow random ids. This draws evenly without reading the whole tables. */
async function sample(client: ClientBase, random: Random, count: number): Promise<Samples> {
  const probes = Array.from({ length: count }, () => random.uuid());
  const near = (
    table: string,
    condition: string,
  ) => `from unnest($1::uuid[]) with ordinality p (probe, position)
    cross join lateral (select * from (
      (select * from sandbox.${table} where id >= p.probe and ${condition} order by id limit 1)
      union all (select * from sandbox.${table} where ${condition} order by id limit 1)) both_ limit 1) x`;
  const connections = await client.query<ConnectionSample>(
    `select x.id, x.company_id as "companyId", x.status,
      array(select s.id from sandbox.sites s where s.company_id = x.company_id order by s.position limit 5) as sites,
      exists (select from sandbox.meters m where m.connection_id = x.id) as "hasMeters",
      (select count(*) from sandbox.connections o where o.company_id = x.company_id)
        < ${connectionsPerSite} * (select count(*) from sandbox.sites s where s.company_id = x.company_id) as "hasRoom"
      ${near('connections', 'true')} order by p.position`,
    [probes],
  );
  const documents = await client.query<DocumentSample>(
    // A bill may move to a meter of the same commodity that has no bill of the same time yet.
    `select x.id, array(
        select m.id
        from sandbox.meters m
          join sandbox.meters own
            on own.id = (x.bill::jsonb #>> '{readings,0,meterId}')::uuid
            and own.datasource_type = m.datasource_type
        where m.company_id = x.company_id
          and not exists (
            select
            from sandbox.usage_data u
            where u.meter_id = m.id
              and u.start_date <= x.period_end
              and u.end_date >= x.period_start)
        order by m.number
        limit 5) as meters
      ${near('documents', 'deleted_at is null')} order by p.position`,
    [probes],
  );
  const meters = await client.query<MeterSample>(
    `select x.id, x.datasource_type as "datasourceType", i.seconds, i.usage_units as units,
      to_char(i.start_at, 'YYYY-MM-DD"T"HH24:MI:SS.US') as last,
      bill.document_id as "documentId", bill.end_date::text as "billedUntil" ${near('meters', 'true')}
      left join lateral (select * from sandbox.usage_data u where u.meter_id = x.id
        order by u.end_date desc, u.id limit 1) bill on true
      left join lateral (select * from sandbox.intervals i where i.meter_number = x.number
        order by i.start_at desc, i.seconds desc, i.usage_units desc limit 1) i on true order by p.position`,
    [probes],
  );
  return { connections: connections.rows, documents: documents.rows, meters: meters.rows };
}
