import type { ClientBase } from 'pg';
import { documentColumns, documentValues, usageColumns, usageValues } from '../records/document-rows.ts';
import { toMembers } from '../records/members.ts';
import { take, type WorkingSet } from './working-set.ts';

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
