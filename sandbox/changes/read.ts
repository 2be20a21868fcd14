import type { ClientBase } from 'pg';
import type { Bill } from '../records/bill.ts';
import type { CompanyObject } from '../records/company.ts';
import type { ConnectionFacts } from '../records/connection.ts';
import { fromMembers } from '../records/members.ts';
import type { MeterFacts, MeterInPlace } from '../records/meter.ts';
import type { Change, ChangeType } from './schema.ts';
import { type Billed, emptyWorkingSet, type Site, type WorkingSet } from './working-set.ts';

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
