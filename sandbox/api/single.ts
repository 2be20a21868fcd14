import type { Reader } from '../faults/snapshot.ts';
import {
  companyRecord,
  connectionRecord,
  documentRecord,
  meterRecord,
  siteRecord,
  usageRecord,
  type Version,
} from './record-sql.ts';

export type Resource = 'company' | 'site' | 'connection' | 'document' | 'usage' | 'meter';

const sources: Readonly<Record<Resource, string>> = {
  company: 'sandbox.companies c where c.id = $1',
  site: 'sandbox.sites s join sandbox.companies c on c.id = s.company_id where s.id = $1',
  connection: 'sandbox.connections k join sandbox.companies c on c.id = k.company_id where k.id = $1',
  meter: 'sandbox.meters m join sandbox.companies c on c.id = m.company_id where m.id = $1',
  document:
    'sandbox.documents d join sandbox.companies c on c.id = d.company_id where d.id = $1 and (d.deleted_at is null or $3)',
  usage: `sandbox.usage_data u join sandbox.documents d on d.id = u.document_id
    join sandbox.companies c on c.id = u.company_id where u.id = $1`,
};

function recordOf(resource: Resource, version: Version): string {
  if (resource === 'document') return documentRecord(version);
  if (resource === 'usage') return usageRecord(version);
  return { company: companyRecord, site: siteRecord, connection: connectionRecord, meter: meterRecord }[
    resource
  ];
}

/** Returns the JSON text of a record; undefined if the organization does not have it. */
export async function readRecord(
  reader: Reader,
  resource: Resource,
  version: Version,
  id: string,
  organizationId: string,
  withDeleted: boolean,
): Promise<string | undefined> {
  const text = `select ${recordOf(resource, version)} as record from ${sources[resource]} and c.organization_id = $2`;
  const values = resource === 'document' ? [id, organizationId, withDeleted] : [id, organizationId];
  const { rows } = await reader.query<{ record: string }>({
    name: `one ${resource} ${version}`,
    text,
    values,
  });
  return rows[0]?.record;
}

/** Returns all companies of an organization as a JSON array without an envelope. */
export async function readCompanies(reader: Reader, organizationId: string): Promise<string> {
  const text = `select coalesce(string_agg(${companyRecord}, ',' order by c.position), '') as records
    from sandbox.companies c where c.organization_id = $1`;
  const { rows } = await reader.query<{ records: string }>({
    name: 'companies',
    text,
    values: [organizationId],
  });
  return `[${rows[0]?.records ?? ''}]`;
}
