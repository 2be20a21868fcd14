import { isDeepStrictEqual } from 'node:util';
import { sql } from 'drizzle-orm';
import { expect } from 'vitest';
import type { DeliveredEvent } from '../../contract/event.ts';
import { tableOf } from '../../db/resources.ts';
import { audit } from '../../operations/audit/audit.ts';
import type { Service } from './service.ts';
import { type Listed, type RecordOfService, truthOf } from './timeline.ts';
import { clientOf, usageSources } from './worker.ts';
import { tightCap, type World } from './world.ts';

/** Throws if the warehouse is not as the model says, after a quiet time and one backfill. */
export async function compare(world: World): Promise<void> {
  await compareEvents(world);
  await compareAudit(world);
  await compareRecords(world);
  await compareReadings(world);
  await compareSites(world);
  await compareStatusChanges(world);
  await compareStates(world);
  const before = await versionsOf(world);
  await world.backfill();
  expect(await versionsOf(world), 'another backfill writes nothing').toEqual(before);
}

/** Throws if a record or a reading that an event told is not as the service has it, before anything else is read. */
export async function compareTold(world: World): Promise<void> {
  const told = toldBy(world);
  const chosen = told.flatMap(({ id }) => (id === undefined ? [] : [id]));
  await compareRecords(world, new Set(chosen));
  await compareReadings(world, (meterId, start) =>
    told.some(
      (one) => one.meterId === meterId && one.start.slice(0, 19) <= start && start < one.end.slice(0, 19),
    ),
  );
  await compareSites(world);
}

/** What an event of the service says: about a record, or about readings. */
type Told = Readonly<Record<'updated' | 'status' | 'meterId' | 'start' | 'end', string>> & {
  /** The id of the record; readings have none. */
  readonly id?: string;
  readonly eventType?: string;
  readonly old?: { readonly status?: string };
  readonly site?: { readonly id: string };
  readonly sitesRelations?: readonly { readonly site: { readonly id: string } }[];
};

const toldBy = ({ records }: World): Told[] =>
  records.events.flatMap(({ event, forged }) => (forged ? [] : saidBy(event)));

const saidBy = ({ body = '' }: DeliveredEvent): Told => JSON.parse(body) as Told;

/** Throws if the warehouse shows something that it must not show at any time, whatever is under way. */
export async function compareAtAnyTime({ warehouse: { db }, records, capped }: World): Promise<void> {
  const { rows } = await db.execute(sql`
    select 'usage of a deleted document is live' as what, u.id
    from utility.usage_data u join utility.documents d on d.id = u.document_id
    where u.deleted_at is null and d.deleted_at >= u.synced_at
    union all
    select 'an older event is shown', id from utility.documents where updated < raw_updated
    union all
    select 'an older event is shown', id from utility.connections where updated < raw_updated
    union all
    select 'an event was applied before its state was read', record from model.settlings where too_early
    union all
    select 'more rows were deleted than the cap allows', run_id from metersync.deletes
    where ${capped && !records.hasLeft} and state = 'applied' and reason = 'absent' and decided_at is null
      and resource in ('connections', 'meters', 'documents')
    group by run_id, resource, company_id having count(*) > ${tightCap.rows}`);
  expect(rows, 'what must not be shown').toEqual([]);
}

/** Each acknowledged event is settled once. Only events of what the service does not have may wait or be missing. */
async function compareEvents({ warehouse: { db }, service, acknowledged, records }: World): Promise<void> {
  const { rows } = await db.execute<{ id: string; outcome: string; owner: string | null; times: number }>(sql`
    select id, outcome, split_part(queue, '/', 2) as owner,
      (select count(*)::int from model.settlings s where s.event_id = e.id) as times
    from metersync.journal e`);
  expect(new Set(rows.map(({ id }) => id)), 'events of the journal').toEqual(acknowledged);
  const owners = await ownersOf(service);
  const unsettled = rows.filter(({ outcome, owner, times }) => {
    if (outcome === 'pending')
      return times !== 0 || owner === null || owners.has(owner) || records.made.has(owner);
    return times !== (outcome === 'missing' ? 0 : 1) || outcome === 'dead';
  });
  expect(unsettled, 'events that are not settled once').toEqual([]);
  const { rows: made } = await db.execute(sql`select id from utility.companies where id::text in
    (select jsonb_array_elements_text(${JSON.stringify([...records.made])}::jsonb))`);
  expect(made, 'companies that only forged events name').toEqual([]);
}

/** Companies and meters that the service has: the owners of queues. */
async function ownersOf(service: Service): Promise<Set<string>> {
  const companies = (await service.list('/company')).map(({ id }) => id);
  const meters = await Promise.all(companies.map((id) => service.list(`/meter/company/${id}`)));
  return new Set([...companies, ...meters.flat().map(({ id }) => id)]);
}

async function compareAudit({ warehouse, service, usageFrom }: World): Promise<void> {
  const client = clientOf(service, usageSources[usageFrom]);
  const report = await audit({ warehouse, service: client, concurrency: 1 });
  expect(report.examples, 'differences of the audit').toEqual([]);
  expect(report.differences).toBe(0);
}

interface Row extends Record<string, unknown> {
  readonly id: string;
  readonly owner: string | null;
  readonly raw: unknown;
  readonly live: boolean;
  readonly kept: boolean;
  /** The document of a row of usage. */
  readonly document: string | null;
}

/**
 * Each record that the service lists is live and as it is listed, and no other is, unless a person keeps it.
 * With `chosen`, this is asked only of these records, and of the usage of these documents.
 */
async function compareRecords(
  { warehouse: { db }, service, records, usageFrom }: World,
  chosen?: ReadonlySet<string>,
): Promise<void> {
  const truth = await truthOf(service, records.companies);
  const isNested = usageFrom === 'records';
  const isChosen = (id: string, document?: string | null): boolean =>
    chosen === undefined || chosen.has(id) || chosen.has(document ?? id);
  for (const [resource, all] of Object.entries(truth) as [Listed, (typeof truth)[Listed]][]) {
    const listed = new Map(
      [...all].filter(([id, shown]) => {
        const [record] = shown.values() as Iterable<RecordOfService & { document?: { id: string } }>;
        return isChosen(id, record?.document?.id);
      }),
    );
    const { rows: found } = await db.execute<Row>(sql`
      select id::text as id, company_id as owner, raw, deleted_at is null as live,
        to_jsonb(t) ->> 'document_id' as document, exists (
        select from metersync.deletes d
        where d.resource = ${resource} and d.record_id = t.id::text and d.state in ('rejected', 'undone')) as kept
      from ${tableOf(resource)} t`);
    const rows = found.filter(({ id, document }) => isChosen(id, document));
    const live = rows.filter((row) => row.live && (!row.kept || listed.has(row.id))).map(({ id }) => id);
    expect(live.toSorted(), `live ${resource}`).toEqual([...listed.keys()].toSorted());
    for (const { id, owner, raw } of rows) {
      const shown = listed.get(id);
      if (shown === undefined) continue;
      const companies = [...shown.keys()].sort();
      const named = companyNamed([...shown.values()][0]);
      const lister = companies.find((company) => company === named) ?? companies[0];
      // A record lists less about its usage than the endpoint of usage.
      if (resource !== 'usageData' || !isNested)
        expect(raw, `${resource} ${id}`).toEqual(shown.get(lister as string));
      expect(owner, `owner of ${resource} ${id}`).toBe(named ?? lister);
    }
  }
}

function companyNamed(record: object | undefined): string | undefined {
  const { company, document } = (record ?? {}) as {
    company?: { id: string };
    document?: { company?: { id: string } };
  };
  return company?.id ?? document?.company?.id;
}

/** The readings of each live meter, or those that are chosen by their start, are those of the service. */
async function compareReadings(
  { warehouse: { db }, service }: World,
  isChosen: (meterId: string, start: string) => boolean = () => true,
): Promise<void> {
  const { rows } = await db.execute<{ id: string; kept: boolean; readings: string[] }>(sql`
    select m.id, exists (
      select from metersync.deletes d where d.meter_id = m.id and d.state <> 'applied') as kept, array(
      select concat_ws(' ', to_char(start_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS'), granularity_seconds, usage,
        usage_units)
      from utility.intervals i where i.meter_id = m.id order by 1) as readings
    from utility.meters m where deleted_at is null`);
  for (const { id, kept, readings } of rows) {
    if (kept) continue;
    const listed = await service.list<Record<'start' | 'end' | 'usage' | 'usageUnits', string>>(
      `/interval/meter/${id}`,
    );
    const shown = listed.map(({ start, end, usage, usageUnits }) => {
      const seconds = (Date.parse(`${end}Z`) - Date.parse(`${start}Z`)) / 1000;
      return [start.slice(0, 19), seconds, usage, usageUnits].join(' ');
    });
    const chosen = (all: readonly string[]): string[] =>
      all.filter((reading) => isChosen(id, reading.slice(0, 19)));
    expect(chosen(readings), `readings of ${id}`).toEqual(chosen(shown.sort()));
  }
}

/** Live connections and documents have the sites that their records list, or else those of their newest event. */
async function compareSites(world: World): Promise<void> {
  const { warehouse, service, records, timeline, habits } = world;
  if (!habits.listsSites && timeline.goesBack) return;
  const truth = await truthOf(service, records.companies);
  const listed = [truth.connections, truth.documents].flatMap((all) =>
    [...all.values()].flatMap((shown) => [...shown.values()] as unknown as Told[]),
  );
  const sayings = habits.listsSites ? listed : toldBy(world).filter(({ id }) => id !== undefined);
  const sites = new Map<string, string[]>();
  for (const { id = '', site, sitesRelations } of sayings.toSorted((a, b) =>
    a.updated < b.updated ? -1 : 1,
  ))
    sites.set(id, [...new Set((sitesRelations ?? [{ site }]).map((one) => one.site?.id ?? ''))].sort());
  const { rows } = await warehouse.db.execute<{ id: string; sites: string[] }>(sql`
    select id, array(
      select site_id::text from utility.connection_sites where connection_id = k.id order by 1) as sites
    from utility.connections k where deleted_at is null
    union all
    select id, array[site_id::text] from utility.documents where deleted_at is null and site_id is not null`);
  const forged = records.events.map(({ event, forged }) => forged && saidBy(event).id);
  for (const row of rows)
    if (sites.has(row.id) && !forged.includes(row.id))
      expect(row.sites, `sites of ${row.id}`).toEqual(sites.get(row.id));
}

/** Each status that an event reports for the first time, or as changed, is there once, and no other. */
async function compareStatusChanges(world: World): Promise<void> {
  const told = toldBy(world).filter(
    ({ sitesRelations, eventType, old }) =>
      sitesRelations !== undefined && (eventType === undefined || old?.status !== undefined),
  );
  const expected = new Set(told.map(({ id, updated, status }) => [id, updated, status].join(' ')));
  const { rows } = await world.warehouse.db.execute<{ change: string }>(sql`
    select concat_ws(' ', connection_id, to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), status)
      as change
    from utility.connection_status_changes
    where connection_id in (select id from utility.connections where raw is not null)`);
  expect(rows.map(({ change }) => change).toSorted(), 'status changes').toEqual([...expected].toSorted());
}

/** Resources whose states the timeline has. */
const timed: readonly string[] = ['connections', 'meters', 'documents', 'usageData'];

/** The history has each state that a row showed, and each is one that the service had, in its order. */
async function compareStates({ warehouse: { db }, timeline, usageFrom }: World): Promise<void> {
  const { rows } = await db.execute<{ resource: Listed; id: string; shown: unknown[]; kept: unknown[] }>(sql`
    select resource, id, shown,
      array(
        select raw from metersync.earlier_states e
        where e.resource = s.resource and coalesce(e.id::text, e.meter_id) = s.id
        order by valid_to) as kept
    from (
      select case relation when 'usage_data' then 'usageData' else relation end as resource, id,
        json_agg(state -> 'raw' order by number) as shown
      from model.states group by 1, 2) s`);
  for (const { resource, id, shown, kept } of rows) {
    const earlier = kept.map((raw) => raw ?? null);
    expect(earlier, `history of ${resource} ${id}`).toEqual(shown.slice(0, -1).map((raw) => raw ?? null));
    if (!timed.includes(resource) || (resource === 'usageData' && usageFrom === 'records')) continue;
    const read = shown.filter((raw, at) => raw && !isDeepStrictEqual(raw, shown[at - 1]));
    const places = timeline.placesOf(resource, id, read);
    expect(places, `states of ${resource} ${id} that it never had`).not.toContain(-1);
    const times = read.map((raw) => (raw as { updated?: string }).updated ?? '');
    if (!timeline.goesBack)
      expect(times, `times of the states of ${resource} ${id}`).toEqual(times.toSorted());
    if (timeline.isOrdered)
      expect(places, `order of ${resource} ${id}`).toEqual(places.toSorted((a, b) => a - b));
  }
}

/** Versions of all rows, by which a write of a row is seen. */
async function versionsOf({ warehouse: { db } }: World): Promise<unknown[]> {
  const { rows } = await db.execute(sql`
    select 'documents' as of, id::text, xmin::text || ctid::text as version from utility.documents
    union all select 'usageData', id::text, xmin::text || ctid::text from utility.usage_data
    union all select 'connections', id::text, xmin::text || ctid::text from utility.connections
    union all select 'meters', id::text, xmin::text || ctid::text from utility.meters
    union all select 'sites', id::text, xmin::text || ctid::text from utility.sites
    union all select 'companies', id::text, xmin::text || ctid::text from utility.companies
    union all select 'readings', concat_ws(' ', meter_id, start_at, granularity_seconds, ordinal),
      xmin::text || ctid::text from utility.intervals
    order by 1, 2`);
  return rows;
}
