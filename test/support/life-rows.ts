import { type SQL, sql } from 'drizzle-orm';
import { array } from '../../db/connection/arrays.ts';
import type { Warehouse } from '../../db/connection/connect.ts';
import { type Life, type Reading, slots } from './life.ts';

/** The rows of a life by kind. */
export type LifeRows = Readonly<Record<keyof ReturnType<typeof expectedOf>, unknown>>;

/** Reads lives from the warehouse, in the shape of `expectedOf`. */
export async function storedOf(warehouse: Warehouse, lives: readonly Life[]): Promise<LifeRows[]> {
  const rows = async (query: SQL) => {
    const result = await warehouse.db.execute<{ of: string } & Record<string, unknown>>(query);
    const byOwner = Map.groupBy(result.rows, (row) => row.of);
    return (owner: string): Record<string, unknown>[] =>
      (byOwner.get(owner) ?? []).map(({ of: _, ...row }) => row);
  };
  const documents = array(
    lives.map(({ documentId }) => documentId),
    'uuid',
  );
  const connections = array(
    lives.map(({ connectionId }) => connectionId),
    'uuid',
  );
  const meters = array([...new Set(lives.map(({ place }) => place.meterId))], 'text');
  const events = array(
    lives.flatMap((life) => life.events.map(({ id }) => id)),
    'text',
  );
  const documentOf =
    await rows(sql`select id as of, raw, ${isoTime('updated')} as updated, site_id as "siteId"
    from utility.documents where id = any(${documents}) and deleted_at is null`);
  const usageOf = await rows(sql`select document_id as of, raw
    from utility.usage_data where document_id = any(${documents}) and deleted_at is null order by id::text collate "C"`);
  const connectionOf = await rows(sql`select id as of, raw, ${isoTime('updated')} as updated, status
    from utility.connections where id = any(${connections}) and deleted_at is null`);
  const sitesOf = await rows(sql`select connection_id as of, site_id as "siteId"
    from utility.connection_sites where connection_id = any(${connections}) order by site_id::text collate "C"`);
  const changesOf = await rows(sql`select connection_id as of, ${isoTime('at')} || ' ' || status as change
    from utility.connection_status_changes where connection_id = any(${connections}) order by at, status collate "C"`);
  const eventOf = await rows(sql`select id as of, outcome, error, intervals_found < interval_count as short
    from metersync.events where id = any(${events})`);
  const readingsAt = await rows(sql`select meter_id || ' ' || left(${isoTime('start_at')}, 19) as of, usage
    from utility.intervals where meter_id = any(${meters})`);
  const missingOf = await rows(sql`select meter_id as of, left(${isoTime('lower(span)')}, 19) as time
    from (select meter_id, unnest(missing) as span from metersync.interval_ledger where meter_id = any(${meters})) missing`);
  return lives.map((life) => {
    const times = Array.from({ length: slots }, (_, slot) => life.timeOf(slot));
    const { meterId } = life.place;
    const missing = missingOf(meterId).map(({ time }) => String(time));
    const journal = life.events.map(({ id }) => eventOf(id)[0] ?? { outcome: 'never recorded' });
    return {
      document: documentOf(life.documentId)[0] ?? null,
      usage: usageOf(life.documentId).map(({ raw }) => raw),
      connection: connectionOf(life.connectionId)[0] ?? null,
      connectionSites: sitesOf(life.connectionId).map(({ siteId }) => siteId),
      statusChanges: changesOf(life.connectionId).map(({ change }) => change),
      readings: times.flatMap((time) => readingsAt(`${meterId} ${time}`).map(({ usage }) => [time, usage])),
      rangesMissing: missing.filter((time) => time >= life.timeOf(0) && time < life.timeOf(slots)),
      unsettled: journal.filter(({ outcome }) => outcome !== 'applied' && outcome !== 'superseded'),
      short: journal.filter(({ short }) => short).length,
    };
  });
}

const isoTime = (column: string): SQL =>
  sql.raw(`to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US')`);

/** Returns a life as the service has it. */
export function expectedOf(life: Life) {
  const { document, connection, readings } = life.current;
  const [raw] = life.documents(life.current);
  const { updated, siteId } = document;
  const sorted = <T>(items: Iterable<T>, key: (item: T) => string): T[] =>
    [...items].sort((a, b) => (key(a) < key(b) ? -1 : 1));
  return {
    document: document.deleted ? null : { raw, updated, siteId },
    usage: sorted(life.usage(life.current), ({ id }) => id),
    connection: {
      raw: life.connections(life.current)[0],
      updated: connection.updated,
      status: connection.status,
    },
    connectionSites: sorted(connection.sites, (id) => id),
    statusChanges: sorted(life.statusChanges, (change) => change),
    readings: readingsOf(life, readings),
    rangesMissing: [],
    unsettled: [],
    short: 0,
  };
}

/** Puts readings into the shape of `expectedOf`. */
export const readingsOf = (life: Life, readings: Iterable<Reading>): [time: string, usage: string][] =>
  [...readings].sort((a, b) => a.slot - b.slot).map(({ slot, usage }) => [life.timeOf(slot), usage]);
