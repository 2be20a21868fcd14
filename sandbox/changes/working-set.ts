import type { ClientBase } from 'pg';
import type { EventType, PendingEvent } from '../events.ts';
import { notFound, Problem } from '../problem.ts';
import type {
  CompanyObject,
  CompanyRow,
  ConnectionFacts,
  ConnectionRow,
  MeterFacts,
  MeterInPlace,
  SiteObject,
  SiteRow,
} from '../records/company.ts';
import type { Bill } from '../records/document.ts';
import type { StoredDocument } from '../records/rows.ts';
import { documentColumns, documentValues, usageColumns, usageValues } from '../records/rows.ts';
import { fromMembers, toMembers } from '../records/texts.ts';
import type { Micros } from '../time.ts';
import type { Change, ChangeType } from './schema.ts';

export interface Document extends StoredDocument {
  readonly deletedAt: string | null;
}

interface Site extends SiteObject {
  readonly companyId: string;
}

/** The days that the bills of an account cover, from the first to the last. */
interface Billed {
  readonly from: string;
  readonly until: string;
}

/** The records that a batch of changes touches, in memory. Each change sees the changes before it. */
export interface WorkingSet {
  readonly companies: Map<string, CompanyObject>;
  readonly sites: Map<string, Site>;
  readonly connections: Map<string, ConnectionRow>;
  readonly meters: Map<string, MeterInPlace>;
  readonly documents: Map<string, Document>;
  /** By account. Accounts without bills are absent. */
  readonly billed: Map<string, Billed>;
  readonly newCompanies: CompanyRow[];
  readonly newSites: SiteRow[];
  readonly newMeters: MeterInPlace[];
  readonly changedConnections: Set<string>;
  /** Documents whose columns change. Documents whose bill changes, too, are in `rewrittenDocuments`. */
  readonly changedDocuments: Set<string>;
  readonly rewrittenDocuments: Set<string>;
  readonly events: PendingEvent[];
}

/** Everything that a change depends on. Time and ids are given, so a change can be repeated. */
export interface ChangeContext {
  readonly set: WorkingSet;
  readonly now: Micros;
  readonly newId: () => string;
}

function emptyWorkingSet(): WorkingSet {
  return {
    companies: new Map(),
    sites: new Map(),
    connections: new Map(),
    meters: new Map(),
    documents: new Map(),
    billed: new Map(),
    newCompanies: [],
    newSites: [],
    newMeters: [],
    changedConnections: new Set(),
    changedDocuments: new Set(),
    rewrittenDocuments: new Set(),
    events: [],
  };
}

/** @throws Problem 404 if the record does not exist */
export function take<T>(records: ReadonlyMap<string, T>, what: string, id: string): T {
  const record = records.get(id);
  if (record === undefined) throw notFound(`${what} ${id}`);
  return record;
}

/** Returns the id for a new record. Throws a Problem 409 if a record already has it (service.md 6.2). */
export function unused(records: ReadonlyMap<string, unknown>, what: string, id: string): string {
  if (records.has(id)) throw new Problem(409, `${what} ${id} exists`);
  return id;
}

export function emit(set: WorkingSet, companyId: string, type: EventType, payload: object): void {
  set.events.push({ companyId, type, payload });
}

interface Mentioned {
  readonly companies: Set<string>;
  readonly sites: Set<string>;
  readonly connections: Set<string>;
  readonly meters: Set<string>;
  readonly documents: Set<string>;
}

/** Reads the records that changes mention. No rows are locked: the transaction is the only writer. */
export async function readWorkingSet(client: ClientBase, changes: readonly Change[]): Promise<WorkingSet> {
  const set = emptyWorkingSet();
  const ids = mentionedBy(changes);
  await readConnections(client, set, [...ids.connections]);
  await readDocuments(client, set, [...ids.documents]);
  const readings = [...set.documents.values()].flatMap(({ bill }) => bill.readings);
  await readMeters(
    client,
    set,
    [...ids.meters, ...readings.map((reading) => reading.meterId)],
    [...ids.connections],
  );
  if (changes.some(({ type }) => type === 'createDocument')) await readBilled(client, set);
  for (const meter of set.meters.values()) ids.companies.add(meter.companyId);
  await readCompanies(client, set, [...ids.companies]);
  await readSites(client, set, [...ids.sites], [...ids.companies]);
  return set;
}

function mentionedBy(changes: readonly Change[]): Mentioned {
  const ids: Mentioned = {
    companies: new Set(),
    sites: new Set(),
    connections: new Set(),
    meters: new Set(),
    documents: new Set(),
  };
  const newOnes: Readonly<Partial<Record<ChangeType, Set<string>>>> = {
    createCompany: ids.companies,
    createConnection: ids.connections,
    createDocument: ids.documents,
    supersedeDocument: ids.documents,
  };
  for (const change of changes) {
    // An existing record may have the id that the change gives to a new record.
    if ('id' in change && change.id !== undefined) newOnes[change.type]?.add(change.id);
    if ('companyId' in change) ids.companies.add(change.companyId);
    if ('connectionId' in change) ids.connections.add(change.connectionId);
    if ('documentId' in change) ids.documents.add(change.documentId);
    if ('meterId' in change && change.meterId !== undefined) ids.meters.add(change.meterId);
    if ('siteId' in change) ids.sites.add(change.siteId);
    if ('siteIds' in change) for (const id of change.siteIds ?? []) ids.sites.add(id);
    if ('resource' in change)
      ids[change.resource === 'connection' ? 'connections' : 'documents'].add(change.id);
  }
  return ids;
}

const stamp = (column: string) => `to_char(${column}, 'YYYY-MM-DD"T"HH24:MI:SS.US')`;

async function readConnections(client: ClientBase, set: WorkingSet, ids: string[]): Promise<void> {
  if (ids.length === 0) return;
  const { rows } = await client.query<Record<'id' | 'created' | 'updated' | 'members' | 'secrets', string>>(
    `select id, ${stamp('created')} as created, ${stamp('updated')} as updated, members, secrets
      from sandbox.connections where id = any ($1::uuid[])`,
    [ids],
  );
  for (const { members, secrets, ...row } of rows) {
    const facts = fromMembers<ConnectionFacts>(members);
    set.connections.set(row.id, { ...row, facts, secrets: JSON.parse(secrets) as Record<string, unknown> });
  }
}

interface DocumentRow extends Record<'id' | 'created' | 'updated' | 'bill', string> {
  readonly deletedAt: string | null;
  readonly company: CompanyObject;
}

async function readDocuments(client: ClientBase, set: WorkingSet, ids: string[]): Promise<void> {
  if (ids.length === 0) return;
  const { rows } = await client.query<DocumentRow>(
    `select d.id, ${stamp('d.created')} as created, ${stamp('d.updated')} as updated, d.bill,
      ${stamp('d.deleted_at')} as "deletedAt", ${companyObject} as company
      from sandbox.documents d join sandbox.companies c on c.id = d.company_id where d.id = any ($1::uuid[])`,
    [ids],
  );
  for (const row of rows) set.documents.set(row.id, { ...row, bill: JSON.parse(row.bill) as Bill });
}

const companyObject = `json_build_object('externalId', c.external_id, 'id', c.id, 'name', c.name, 'publicId', c.public_id)`;

interface MeterRow extends Omit<MeterInPlace, 'facts' | 'utility' | 'country'> {
  readonly members: string;
  readonly connectionMembers: string;
}

/** Reads the named meters, and all of their accounts and of the named connections, as bills need them. */
async function readMeters(
  client: ClientBase,
  set: WorkingSet,
  ids: string[],
  connections: string[],
): Promise<void> {
  if (ids.length + connections.length === 0) return;
  const { rows } = await client.query<MeterRow>(
    `with named as (select connection_id, account_id from sandbox.meters where id = any ($1::uuid[])),
      wanted as (select m.* from sandbox.meters m join (select distinct * from named) n
          on n.connection_id = m.connection_id and n.account_id = m.account_id
        union select m.* from sandbox.meters m where m.connection_id = any ($2::uuid[]))
      select m.id, m.number, m.company_id as "companyId", m.connection_id as "connectionId",
        m.account_id as "accountId", m.account_number as "accountNumber",
        json_build_object('id', s.id, 'name', s.name) as site, m.members, k.members as "connectionMembers"
      from wanted m join sandbox.sites s on s.id = m.site_id join sandbox.connections k on k.id = m.connection_id
      order by m.number`,
    [ids, connections],
  );
  const surroundings = new Map<string, ConnectionFacts>();
  for (const { members, connectionMembers, ...row } of rows) {
    const facts = surroundings.get(row.connectionId) ?? fromMembers<ConnectionFacts>(connectionMembers);
    surroundings.set(row.connectionId, facts);
    set.meters.set(row.id, {
      ...row,
      utility: facts.datasource,
      country: facts.country,
      facts: fromMembers<MeterFacts>(members),
    });
  }
}

async function readBilled(client: ClientBase, set: WorkingSet): Promise<void> {
  const { rows } = await client.query<Billed & { accountId: string }>(
    `select m.account_id as "accountId", min(u.start_date)::text as from, max(u.end_date)::text as until
      from sandbox.meters m join sandbox.usage_data u on u.meter_id = m.id
      where m.id = any ($1::uuid[]) group by m.account_id`,
    [[...set.meters.keys()]],
  );
  for (const { accountId, ...billed } of rows) set.billed.set(accountId, billed);
}

async function readCompanies(client: ClientBase, set: WorkingSet, ids: string[]): Promise<void> {
  if (ids.length === 0) return;
  const { rows } = await client.query<{ company: CompanyObject }>(
    `select ${companyObject} as company from sandbox.companies c where c.id = any ($1::uuid[])`,
    [ids],
  );
  for (const { company } of rows) set.companies.set(company.id, company);
}

/** Reads the named sites, and all sites of the named companies, the oldest first. */
async function readSites(
  client: ClientBase,
  set: WorkingSet,
  ids: string[],
  companies: string[],
): Promise<void> {
  if (ids.length + companies.length === 0) return;
  const { rows } = await client.query<Site>(
    `select id, name, company_id as "companyId" from sandbox.sites
      where id = any ($1::uuid[]) or company_id = any ($2::uuid[]) order by position`,
    [ids, companies],
  );
  for (const row of rows) set.sites.set(row.id, row);
}

/** Writes the results of the changes with one statement for each table, in the order of their keys. */
export async function writeWorkingSet(client: ClientBase, set: WorkingSet): Promise<void> {
  await writeCompanies(client, set);
  await writeConnections(client, set);
  await writeMeters(client, set);
  await writeDocuments(client, set);
}

async function writeCompanies(client: ClientBase, { newCompanies, newSites }: WorkingSet): Promise<void> {
  if (newCompanies.length === 0) return;
  await insert(
    client,
    `companies (organization_id, id, external_id, public_id, name, members)
      select coalesce(v.a, (select id from sandbox.organizations order by position limit 1)), v.b, v.c, v.d, v.e, v.f`,
    ['uuid', 'uuid', 'text', 'uuid', 'text', 'text'],
    newCompanies.map(({ organizationId, company, facts }) => [
      organizationId ?? null,
      company.id,
      company.externalId,
      company.publicId,
      company.name,
      toMembers(facts),
    ]),
  );
  await insert(
    client,
    'sites (id, company_id, name, time_zone, members) select v.*',
    ['uuid', 'uuid', 'text', 'text', 'text'],
    newSites.map((site) => [site.id, site.companyId, site.name, site.timeZone, toMembers(site.facts)]),
  );
}

async function writeConnections(client: ClientBase, set: WorkingSet): Promise<void> {
  const changed = [...set.changedConnections].sort().map((id) => take(set.connections, 'connection', id));
  await insert(
    client,
    'connections (id, company_id, created, updated, status, members, secrets) select v.*',
    ['uuid', 'uuid', 'timestamp', 'timestamp', 'text', 'text', 'text'],
    changed.map(({ id, created, updated, facts, secrets }) => [
      id,
      facts.company.id,
      created,
      updated,
      facts.status,
      toMembers(facts),
      JSON.stringify(secrets),
    ]),
    `on conflict (id) do update set updated = excluded.updated, status = excluded.status,
      members = excluded.members, secrets = excluded.secrets`,
  );
}

async function writeMeters(client: ClientBase, { newMeters }: WorkingSet): Promise<void> {
  await insert(
    client,
    `meters (id, company_id, site_id, connection_id, account_id, account_number, datasource_type, members)
      select v.*`,
    ['uuid', 'uuid', 'uuid', 'uuid', 'uuid', 'text', 'text', 'text'],
    newMeters.map((meter) => [
      meter.id,
      meter.companyId,
      meter.site.id,
      meter.connectionId,
      meter.accountId,
      meter.accountNumber,
      meter.facts.datasourceType,
      toMembers(meter.facts),
    ]),
  );
}

/** Writes new and changed bills with their usage rows; of others only `updated` and `deleted_at`. */
async function writeDocuments(client: ClientBase, set: WorkingSet): Promise<void> {
  const rewritten = [...set.rewrittenDocuments].sort().map((id) => take(set.documents, 'document', id));
  await insert(
    client,
    `documents (${documentColumns.join(', ')}) select v.*`,
    ['uuid', 'uuid', 'uuid', 'uuid', 'timestamp', 'timestamp', 'date', 'date', 'date', ...texts(5)],
    rewritten.map((document) => documentValues(document, set.meters)),
    `on conflict (id) do update set ${documentColumns
      .slice(2)
      .map((column) => `${column} = excluded.${column}`)
      .join(', ')}`,
  );
  const changed = [...set.changedDocuments].sort().map((id) => take(set.documents, 'document', id));
  const deleted = changed.filter((document) => document.deletedAt !== null);
  const kept = rewritten.filter((document) => document.deletedAt === null);
  if (changed.length > 0) {
    await client.query(
      `update sandbox.documents d set updated = v.updated, deleted_at = v.deleted_at
        from unnest($1::uuid[], $2::timestamp[], $3::timestamp[]) v (id, updated, deleted_at) where d.id = v.id`,
      [
        changed.map(({ id }) => id),
        changed.map(({ updated }) => updated),
        changed.map((one) => one.deletedAt),
      ],
    );
    await client.query('delete from sandbox.usage_data where document_id = any ($1::uuid[])', [
      [...rewritten, ...deleted].map(({ id }) => id),
    ]);
  }
  await insert(
    client,
    `usage_data (${usageColumns.join(', ')}) select v.*`,
    [...Array<string>(6).fill('uuid'), 'text', 'timestamp', 'timestamp', 'date', 'date', 'date', ...texts(5)],
    kept.flatMap((document) => usageValues(document, set.meters)),
  );
}

const texts = (count: number): string[] => Array<string>(count).fill('text');

/** Inserts rows. `into` is a table and a select from `v`, with columns a, b, c … of the given types. */
async function insert(
  client: ClientBase,
  into: string,
  types: readonly string[],
  rows: readonly (readonly (string | null)[])[],
  conflict = '',
): Promise<void> {
  if (rows.length === 0) return;
  const columns = types.map((type, index) => `$${index + 1}::${type}[]`);
  const names = types.map((_, index) => String.fromCharCode(97 + index));
  await client.query(
    `insert into sandbox.${into} from unnest(${columns.join(', ')}) v (${names.join(', ')}) ${conflict}`,
    types.map((_, index) => rows.map((row) => row[index])),
  );
}
