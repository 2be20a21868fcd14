/** Records as SQL that returns JSON text. Rows contain such text, so Postgres joins a page as one string. */
export const versions = ['v2', 'v2.1', 'v2.2'] as const;
export type Version = (typeof versions)[number];

const stamp = (column: string) => `to_char(${column}, 'YYYY-MM-DD"T"HH24:MI:SS.US')`;
const dates = (row: string) =>
  `'","created":"'||${stamp(`${row}.created`)}||'","updated":"'||${stamp(`${row}.updated`)}||'",'`;

export const siteRecord = `'{"id":"'||s.id||'","name":'||to_json(s.name)||','||s.members||'}'`;

const companyMembers = `'"id":"'||c.id||'","name":'||to_json(c.name)||',"externalId":'||to_json(c.external_id)
  ||',"publicId":"'||c.public_id||'",'||c.members`;

export const companyRecord = `'{'||${companyMembers}||',"sites":['||coalesce((select string_agg(${siteRecord}, ',' order by s.position)
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
