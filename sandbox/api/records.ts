import type { Reader } from './faults.ts';

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

/** Records as SQL that returns JSON text. Rows contain such text, so Postgres joins a page as one string. */
export const versions = ['v2', 'v2.1', 'v2.2'] as const;
export type Version = (typeof versions)[number];

const stamp = (column: string) => `to_char(${column}, 'YYYY-MM-DD"T"HH24:MI:SS.US')`;
const dates = (row: string) =>
  `'","created":"'||${stamp(`${row}.created`)}||'","updated":"'||${stamp(`${row}.updated`)}||'",'`;

export const siteRecord = `'{"id":"'||s.id||'","name":'||to_json(s.name)||','||s.members||'}'`;

const companyMembers = `'"id":"'||c.id||'","name":'||to_json(c.name)||',"externalId":'||to_json(c.external_id)
  ||',"publicId":"'||c.public_id||'",'||c.members`;

const companyRecord = `'{'||${companyMembers}||',"sites":['||coalesce((select string_agg(${siteRecord}, ',' order by s.position)
  from sandbox.sites s where s.company_id = c.id), '')||']}'`;

export const connectionRecord = `'{"id":"'||k.id||${dates('k')}||k.members||'}'`;

export const meterRecord = `'{"id":"'||m.id||'",'||m.members||'}'`;

/** v2 sends the header. v2.1 and v2.2 send more metadata with it (service.md 9.2). */
const header = (version: Version) =>
  `'"id":"'||d.id||${dates('d')}||d.header${version === 'v2' ? '' : `||','||d.detail`}`;

/** A usage row's members. Only inside a v2.2 document does the breakdown replace timeOfUse (service.md 9.3). */
function usageMembers(version: Version, inDocument: boolean): string {
  const common = `'"id":"'||u.id||${dates('u')}||u.core||','||`;
  if (version === 'v2') return `${common}u.time_of_use||','||u.v20`;
  if (version === 'v2.2' && inDocument) return `${common}u.v21||','||u.time_of_use_breakdown`;
  return `${common}u.time_of_use||','||u.v21`;
}

/** A usage row with the header of its document, without usage rows of its own. Reads rows `u` and `d`. */
export const usageRecord = (version: Version): string =>
  `'{'||${usageMembers(version, false)}||',"document":{'||${header(version)}||'}}'`;

export function documentRecord(version: Version): string {
  const usage = `coalesce((select string_agg('{'||${usageMembers(version, true)}||'}', ',' order by u.start_date, u.id)
    from sandbox.usage_data u where u.document_id = d.id), '')`;
  const demand = version === 'v2.2' ? `||',"demandMeters":'||d.demand_meters` : '';
  return `'{'||${header(version)}||',"usageData":['||${usage}||'],"lineItems":'||d.line_items${demand}||'}'`;
}

/** An interval's id is derived from its meter, start, granularity and units. Reads rows `i` and `m`. */
export const intervalRecord = `'{"id":"'||overlay(overlay(md5(m.id::text||i.start_at||i.seconds||i.usage_units)
  placing '4' from 13) placing '8' from 17)::uuid||${dates('i')}
  ||'"account":"'||m.account_id||'","start":"'||${stamp('i.start_at')}
  ||'","end":"'||${stamp("(i.start_at + i.seconds * interval '1 second')")}||'","usage":"'||i.usage
  ||'","usageUnits":"'||i.usage_units||'","quality":"'||i.quality||'"}'`;
