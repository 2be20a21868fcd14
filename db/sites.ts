import { and, count, eq, getTableColumns, sql } from 'drizzle-orm';
import { array, excluded, isAmong } from './connection/arrays.ts';
import { type Database, type Executor, withTransaction } from './connection/connect.ts';
import { siteOverrides } from './schema/ops.ts';
import { listedSites } from './schema/views.ts';

/** Columns of `analytics.sites` that people set, because the service does not send them. */
export const siteAttributes = [
  'time_zone',
  'emission_region',
  'floor_area',
  'floor_area_units',
] as const;
export type SiteAttribute = (typeof siteAttributes)[number];
type SiteAttributes = Readonly<Record<SiteAttribute, string | null>>;

export type ListedSite = typeof listedSites.$inferSelect;

/** New values of a site. An attribute that is absent stays as it is, and null unsets it. */
export interface SiteValues {
  readonly siteId: string;
  readonly values: Partial<SiteAttributes>;
}

/** Maximum number of sites per statement: more might need too many parameters. */
const rowsAtOnce = 1_000;

/** Values of sites that cannot be set. The message names the first of them. */
export class UnusableSiteValues extends Error {}

interface SiteFilter {
  readonly companyId?: string | undefined;
  readonly siteIds?: readonly string[] | undefined;
}

/** Lists live sites, sites without a time zone first, then by company and name. */
export async function listSites(
  db: Executor,
  { companyId, siteIds }: SiteFilter,
  page: { readonly limit?: number; readonly offset?: number } = {},
): Promise<ListedSite[]> {
  const { company_id, site_id, company, site, time_zone_source } = listedSites;
  const listed = db
    .select()
    .from(listedSites)
    .where(
      and(
        companyId === undefined ? undefined : eq(company_id, companyId),
        siteIds === undefined ? undefined : isAmong(site_id, siteIds, 'uuid'),
      ),
    )
    .orderBy(sql`${time_zone_source} <> 'default'`, company, site, site_id)
    .offset(page.offset ?? 0)
    .$dynamic();
  return await (page.limit === undefined ? listed : listed.limit(page.limit));
}

/**
 * Sets values of sites, all or none, except values that a site already has from any source.
 * @returns how many sites changed
 * @throws UnusableSiteValues if a site does not exist, or a value is not valid
 */
export async function setSites(db: Database, given: readonly SiteValues[]): Promise<number> {
  return await withTransaction(db, async (tx) => {
    const ids = given.map(({ siteId }) => siteId);
    const known = new Map((await listSites(tx, { siteIds: ids })).map((one) => [one.site_id, one]));
    await requireUsable(tx, given, known);
    const own = await tx
      .select()
      .from(siteOverrides)
      .where(isAmong(siteOverrides.siteId, ids, 'uuid'));
    const changed = given.flatMap(({ siteId, values }) => {
      const site = known.get(siteId) as ListedSite;
      const before = own.find((row) => row.siteId === siteId);
      const stored = (attribute: SiteAttribute, ownValue: string | null | undefined) => {
        const value = values[attribute];
        return value === undefined || value === site[attribute] ? (ownValue ?? null) : value;
      };
      const row = {
        siteId,
        timeZone: stored('time_zone', before?.timeZone),
        emissionRegion: stored('emission_region', before?.emissionRegion),
        floorArea: stored('floor_area', before?.floorArea),
        floorAreaUnits: stored('floor_area_units', before?.floorAreaUnits),
      };
      const isSame = siteAttributes.every(
        (name) => values[name] === undefined || values[name] === site[name],
      );
      return isSame ? [] : [row];
    });
    const { siteId, ...others } = getTableColumns(siteOverrides);
    for (let at = 0; at < changed.length; at += rowsAtOnce)
      await tx
        .insert(siteOverrides)
        .values(changed.slice(at, at + rowsAtOnce))
        .onConflictDoUpdate({ target: siteId, set: excluded(others) });
    return changed.length;
  });
}

async function requireUsable(
  tx: Executor,
  given: readonly SiteValues[],
  known: ReadonlyMap<string, ListedSite>,
): Promise<void> {
  const zones = given.flatMap(({ values }) => values.time_zone ?? []);
  const unknown = await tx
    .select({ zone: sql<string>`zone` })
    .from(sql`unnest(${array(zones, 'text')}) as given (zone)`)
    .where(sql`lower(zone) not in (select lower(name) from pg_timezone_names)`);
  const unknownZones = new Set(unknown.map(({ zone }) => zone));
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

/** Sets the proposed time zone of each site that has none. Returns how many sites changed. */
export async function acceptProposedZones(db: Database, companyId?: string): Promise<number> {
  const sites = await listSites(db, { companyId });
  const given = sites.flatMap(({ site_id: siteId, proposed_time_zone: zone }) =>
    zone === null ? [] : [{ siteId, values: { time_zone: zone } }],
  );
  return await setSites(db, given);
}

/** Counts live sites, sites that use UTC because no time zone is set, and proposed time zones. */
export async function countZones(
  db: Executor,
): Promise<{ readonly sites: number; readonly unset: number; readonly proposed: number }> {
  const isUnset = eq(listedSites.time_zone_source, 'default');
  const [found] = await db
    .select({
      sites: count(),
      unset: sql`count(*) filter (where ${isUnset})`.mapWith(Number),
      proposed: count(listedSites.proposed_time_zone),
    })
    .from(listedSites);
  return found ?? { sites: 0, unset: 0, proposed: 0 };
}
