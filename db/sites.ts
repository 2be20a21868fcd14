import { and, type SQL, sql } from 'drizzle-orm';
import { array } from './connection/arrays.ts';
import { type Database, type Executor, withTransaction } from './connection/connect.ts';
import { siteOverrides } from './schema/ops.ts';

/** What people set for a site, as the service does not send it; columns of `analytics.sites`. */
export const siteAttributes = [
  'time_zone',
  'emission_region',
  'floor_area',
  'floor_area_units',
] as const;
export type SiteAttribute = (typeof siteAttributes)[number];
export type SiteAttributes = Readonly<Record<SiteAttribute, string | null>>;

export interface ListedSite extends SiteAttributes {
  readonly site_id: string;
  readonly site: string | null;
  readonly company_id: string | null;
  readonly company: string | null;
  readonly address: string | null;
  readonly time_zone_source: 'site' | 'company' | 'default';
  readonly proposed_time_zone: string | null;
}

/** New values of a site; an attribute that is absent stays, and null unsets it. */
export interface SiteValues {
  readonly siteId: string;
  readonly values: Partial<SiteAttributes>;
}

/** Values of sites that cannot be set; the message names the first. */
export class UnusableSiteValues extends Error {}

export interface SiteFilter {
  readonly companyId?: string | undefined;
  readonly siteIds?: readonly string[] | undefined;
}

const matching = ({ companyId, siteIds }: SiteFilter): SQL =>
  and(
    sql`true`,
    companyId === undefined ? undefined : sql`company_id = ${companyId}::uuid`,
    siteIds === undefined ? undefined : sql`site_id = any(${array(siteIds, 'uuid')})`,
  ) as SQL;

/** Lists live sites, those without a time zone first, then by company and name. */
export async function listSites(
  db: Executor,
  filter: SiteFilter,
  page: { readonly limit?: number; readonly offset?: number } = {},
): Promise<ListedSite[]> {
  const { rows } = await db.execute<ListedSite & Record<string, unknown>>(sql`
    select
      site_id,
      site,
      company_id,
      company,
      address,
      time_zone,
      time_zone_source,
      proposed_time_zone,
      emission_region,
      floor_area,
      floor_area_units
    from analytics.sites
    where ${matching(filter)}
    order by time_zone_source <> 'default', company, site, site_id
    limit ${page.limit ?? null}
    offset ${page.offset ?? 0}`);
  return rows;
}

/**
 * Sets values of sites, all or none. A value that is what the site has already, also by its company
 * or by default, is left alone.
 * @returns how many sites changed
 * @throws UnusableSiteValues for a site that is not there, or a value that cannot be one
 */
export async function setSites(db: Database, given: readonly SiteValues[]): Promise<number> {
  return await withTransaction(db, async (tx) => {
    const ids = given.map(({ siteId }) => siteId);
    const known = new Map((await listSites(tx, { siteIds: ids })).map((one) => [one.site_id, one]));
    await requireUsable(tx, given, known);
    const own = await tx
      .select()
      .from(siteOverrides)
      .where(sql`${siteOverrides.siteId} = any(${array(ids, 'uuid')})`);
    const changed = given.flatMap(({ siteId, values }) => {
      const site = known.get(siteId) as ListedSite;
      const before = own.find((row) => row.siteId === siteId);
      const stored = (attribute: SiteAttribute, ownValue: string | null | undefined) => {
        const value = values[attribute];
        return value === undefined || value === site[attribute] ? (ownValue ?? null) : value;
      };
      const row = {
        site_id: siteId,
        time_zone: stored('time_zone', before?.timeZone),
        emission_region: stored('emission_region', before?.emissionRegion),
        floor_area: stored('floor_area', before?.floorArea),
        floor_area_units: stored('floor_area_units', before?.floorAreaUnits),
      };
      const isSame = siteAttributes.every(
        (name) => values[name] === undefined || values[name] === site[name],
      );
      return isSame ? [] : [row];
    });
    // A statement has everything checked anew, also one that changes no row.
    if (changed.length === 0) return 0;
    // As one parameter: there may be more sites than a statement has parameters.
    await tx.execute(sql`
      insert into ${siteOverrides} (site_id, time_zone, emission_region, floor_area, floor_area_units)
      select *
      from jsonb_to_recordset(${JSON.stringify(changed)}::jsonb) as given (
        site_id uuid,
        time_zone text,
        emission_region text,
        floor_area numeric,
        floor_area_units text
      )
      on conflict (site_id) do update
      set
        time_zone = excluded.time_zone,
        emission_region = excluded.emission_region,
        floor_area = excluded.floor_area,
        floor_area_units = excluded.floor_area_units`);
    return changed.length;
  });
}

async function requireUsable(
  tx: Executor,
  given: readonly SiteValues[],
  known: ReadonlyMap<string, ListedSite>,
): Promise<void> {
  const zones = given.flatMap(({ values }) => values.time_zone ?? []);
  const { rows } = await tx.execute<{ zone: string }>(sql`
    select zone
    from unnest(${array(zones, 'text')}) as given (zone)
    where lower(zone) not in (select lower(name) from pg_timezone_names)`);
  const unknownZones = new Set(rows.map(({ zone }) => zone));
  const seen = new Set<string>();
  for (const { siteId, values } of given) {
    const name = known.get(siteId)?.site ?? siteId;
    if (!known.has(siteId)) throw new UnusableSiteValues(`there is no site ${siteId}`);
    if (seen.has(siteId)) throw new UnusableSiteValues(`${name} is named twice`);
    seen.add(siteId);
    if (unknownZones.has(values.time_zone ?? ''))
      throw new UnusableSiteValues(
        `${name}: "${values.time_zone}" is not an IANA time zone, such as America/Chicago`,
      );
    if (!/^\d{1,15}(\.\d{1,6})?$/.test(values.floor_area ?? '0'))
      throw new UnusableSiteValues(
        `${name}: cannot read floor area "${values.floor_area}" as a number`,
      );
  }
}

/** Sets the proposed time zone of each site that has none. Returns how many got one. */
export async function acceptProposedZones(db: Database, companyId?: string): Promise<number> {
  const sites = await listSites(db, { companyId });
  const given = sites.flatMap(({ site_id: siteId, proposed_time_zone: zone }) =>
    zone === null ? [] : [{ siteId, values: { time_zone: zone } }],
  );
  return await setSites(db, given);
}

/** Counts live sites, those whose days and hours are in UTC as no time zone is set, and proposals. */
export async function countZones(
  db: Executor,
): Promise<{ readonly sites: number; readonly unset: number; readonly proposed: number }> {
  const { rows } = await db.execute<{ sites: number; unset: number; proposed: number }>(sql`
    select
      count(*)::int as sites,
      count(*) filter (where time_zone_source = 'default')::int as unset,
      count(proposed_time_zone)::int as proposed
    from analytics.sites`);
  return rows[0] ?? { sites: 0, unset: 0, proposed: 0 };
}
