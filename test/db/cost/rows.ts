import { createHash } from 'node:crypto';
import { type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../../../db/connection/connect.ts';

/** A warehouse consists of equal plots, each a company with its records. Work uses only one of them. */
export const perPlot = {
  sites: 5,
  connections: 20,
  meters: 5,
  documents: 50,
  usage: 100,
  events: 200,
  pending: 50,
  readings: 200,
} as const;

type Kind = 'company' | 'site' | 'connection' | 'document' | 'usage' | 'run';

/** Returns the id of the `n`-th row of a plot, counted from 1, as `loadPlots` inserts it. */
export function idOf(kind: Kind, plot: number, n = 1): string {
  const hex = createHash('md5').update(`${kind} ${plot} ${n}`).digest('hex');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
export const eventOf = (plot: number, n: number): string => `event ${plot} ${n}`;
export const meterOf = (plot: number, n: number): string => `meter ${plot} ${n}`;

/** Returns the id as SQL, where `n` is SQL. The company's id is a column of `plot`: most rows have it. */
const id = (kind: Kind, n = '1'): string =>
  kind === 'company' ? 'plot.company' : `md5('${kind} ' || p || ' ' || ${n})::uuid`;

/** When records last changed at the service, when they were read, and when events named them. */
export const times = {
  updated: '2025-03-01T00:00:00.000001',
  read: '2025-03-02T00:00:00Z',
  recorded: '2025-03-03T00:00:00Z',
} as const;
const updated = `'${times.updated}'::timestamptz`;
const read = `'${times.read}'::timestamptz`;
const recorded = `'${times.recorded}'::timestamptz`;

/** Months in which readings start. Each meter has the same number of readings in each month. */
const months = ['2024-12', '2025-01', '2025-02'] as const;

/** The start of a meter's n-th reading. */
const startOf = (n: string): string =>
  `(array[${months.map((month) => `'${month}-01'`).join(', ')}])[${n} % ${months.length} + 1]::timestamptz
    + interval '1 hour' * (${n})`;

const document = `jsonb_build_object(
      'id', ${id('document', 'n')},
      'created', '${times.updated}',
      'updated', '${times.updated}',
      'company', ${id('company')},
      'site', ${id('site', '(n % 5 + 1)')},
      'usageData', jsonb_build_array(
        jsonb_build_object('id', ${id('usage', '2 * n - 1')}, 'usage', n, 'usageUnits', 'kWh'),
        jsonb_build_object('id', ${id('usage', '2 * n')}, 'usage', n, 'usageUnits', 'kWh')),
      'filler', repeat('lorem ipsum ', 40))`;

/** Values of the columns that every table of records has: api_version, first_synced_at, synced_at. */
const synced = `'v2', ${read}, ${read}`;
/** Values of valid_from and valid_to. */
const dayBefore = `${read} - interval '1 day', ${read}`;

/** The events of plots. `waits` says whether an event is pending. */
const events = `
      select p, n, kind, waits, failed, 'event ' || p || ' ' || n as event, type, record_id, company_id,
        coalesce(company_id::text, record_id) as owner,
        case when kind <> 'interval'
          then ${updated} + case when waits then interval '1 day' else interval '0' end end as occurred_at,
        case when kind = 'interval' then '2025-01-01'::timestamptz end as range_start,
        case when kind = 'interval' then '2025-01-31'::timestamptz end as range_end,
        case when kind = 'interval' then 3 end as interval_count,
        ${recorded} + interval '1 millisecond' * n + interval '1 microsecond' * (p % 1000) as recorded_at
      from plot, generate_series(1, ${perPlot.events}) n,
        lateral (
          select n <= ${perPlot.pending} as waits,
            n <= ${perPlot.pending} and n % 10 = 0 as failed,
            case n % 5 when 0 then 'connection' when 1 then 'interval' else 'document' end as kind
        ) which,
        lateral (
          select case kind
              when 'document' then 'document.updated.v2'
              when 'connection' then 'connection.updated.v2'
              else 'intervals.synced' end as type,
            case kind
              when 'document' then ${id('document', '(n % 50 + 1)')}::text
              when 'connection' then ${id('connection', '(n % 20 + 1)')}::text
              else 'meter ' || p || ' ' || n % 5 + 1 end as record_id,
            case when kind <> 'interval' then ${id('company')} end as company_id
        ) what`;

const inserts = {
  'utility.companies': `
    (id, raw, api_version, first_synced_at, synced_at)
    select ${id('company')},
      jsonb_build_object(
        'id', ${id('company')},
        'externalId', 'external ' || p,
        'publicId', 'public ' || p,
        'name', 'Company ' || p,
        'sites', (
          select jsonb_agg(jsonb_build_object('id', ${id('site', 'n')}, 'name', n))
          from generate_series(1, 5) n)),
      ${synced}
    from plot`,
  'utility.sites': `
    (id, company_id, raw, api_version, first_synced_at, synced_at)
    select ${id('site', 'n')}, ${id('company')}, jsonb_build_object('name', 'Site ' || n), ${synced}
    from plot, generate_series(1, ${perPlot.sites}) n`,
  'utility.connections': `
    (id, company_id, raw, api_version, first_synced_at, synced_at)
    select ${id('connection', 'n')}, ${id('company')},
      jsonb_build_object(
        'id', ${id('connection', 'n')},
        'externalId', 'c',
        'datasource', 'City Power',
        'status', 'VALID',
        'created', '${times.updated}',
        'updated', '${times.updated}',
        'accounts', jsonb_build_array(jsonb_build_object(
          'id', 'a',
          'meters', jsonb_build_array('meter ' || p || ' ' || n % 5 + 1)))),
      ${synced}
    from plot, generate_series(1, ${perPlot.connections}) n`,
  'utility.connection_sites': `
    (connection_id, site_id, account_ids, datasource_types)
    select ${id('connection', 'n')}, ${id('site', '(n % 5 + 1)')}, '{a}', '{ELECTRICITY}'
    from plot, generate_series(1, ${perPlot.connections}) n`,
  'utility.connection_status_changes': `
    (connection_id, status, at, event_id)
    select ${id('connection', 'n')}, 'VALID', ${updated}, 'e'
    from plot, generate_series(1, ${perPlot.connections}) n`,
  'utility.meters': `
    (id, company_id, raw, api_version, first_synced_at, synced_at)
    select 'meter ' || p || ' ' || n, ${id('company')},
      jsonb_build_object(
        'id', 'meter ' || p || ' ' || n,
        'site', ${id('site', 'n')},
        'account', 'a',
        'datasourceType', 'ELECTRICITY'),
      ${synced}
    from plot, generate_series(1, ${perPlot.meters}) n`,
  'utility.documents': `
    (id, raw, api_version, first_synced_at, synced_at)
    select ${id('document', 'n')}, ${document}, ${synced}
    from plot, generate_series(1, ${perPlot.documents}) n`,
  'utility.usage_data': `
    (id, company_id, document_id, raw, api_version, first_synced_at, synced_at)
    select ${id('usage', 'n')}, ${id('company')}, ${id('document', '((n + 1) / 2)')},
      jsonb_build_object(
        'id', ${id('usage', 'n')},
        'document', ${id('document', '((n + 1) / 2)')},
        'meter', 'meter ' || p || ' ' || n % 5 + 1,
        'startDate', '2025-01-01',
        'endDate', '2025-01-31',
        'usage', (n + 1) / 2,
        'usageUnits', 'kWh',
        'created', '${times.updated}',
        'updated', '${times.updated}'),
      ${synced}
    from plot, generate_series(1, ${perPlot.usage}) n`,
  'metersync.earlier_states': `
    (resource, id, meter_id, company_id, document_id, updated, raw, valid_from, valid_to, ended_by_kind, ended_by)
    select resource, record, meter, case when resource <> 'companies' then plot.company end, document,
      case when resource = 'documents' then ${updated} end, '{}', ${dayBefore}, 'event', 'e'
    from plot,
      lateral (
        select 'companies' as resource, ${id('company')} as record, null as meter, null::uuid as document
        from generate_series(1, 5)
        union all
        select 'sites', ${id('site', 'n')}, null, null from generate_series(1, ${perPlot.sites}) n
        union all
        select 'connections', ${id('connection', 'n')}, null, null
        from generate_series(1, ${perPlot.connections}) n
        union all
        select 'meters', null, 'meter ' || p || ' ' || n, null from generate_series(1, ${perPlot.meters}) n
        union all
        select 'documents', ${id('document', 'n')}, null, null
        from generate_series(1, ${perPlot.documents}) n
        union all
        select 'usageData', ${id('usage', 'n')}, null, ${id('document', '((n + 1) / 2)')}
        from generate_series(1, ${perPlot.usage}) n
      ) states`,
  'utility.intervals': `
    (meter_id, start_at, granularity_seconds, usage_units, usage, quality, updated, synced_at)
    select 'meter ' || p || ' ' || m, ${startOf('n')}, 3600, 'kWh', n, 'MEASURED', ${updated}, ${read}
    from plot, generate_series(1, ${perPlot.meters}) m,
      generate_series(1, ${perPlot.readings / perPlot.meters}) n`,
  // Of 200 events 50 wait (30 of documents, 10 of connections, 10 of readings); one in ten had failed.
  'metersync.journal': `
    (id, type, kind, record_id, company_id, occurred_at, range_start, range_end, interval_count,
      intervals_found, received_at, recorded_at, settled_at, outcome, queue, due_at, attempts, error, error_code)
    select event, type, kind, record_id, company_id, occurred_at, range_start, range_end, interval_count,
      case when outcome = 'applied' then interval_count end, recorded_at, recorded_at,
      case when outcome in ('applied', 'missing') then recorded_at end, outcome,
      case when waits then kind || '/' || owner end,
      case when waits then recorded_at + case when failed then interval '1 day' else interval '0' end end,
      case when waits and failed then 1 else 0 end,
      case
        when outcome = 'dead' then 'dead'
        when outcome = 'missing' then 'never shown'
        when waits and failed then 'denied'
      end,
      case
        when outcome = 'dead' then 'EVENT_UNREADABLE'
        when outcome = 'missing' then 'RECORD_NOT_SHOWN'
        when waits and failed then 'SERVICE_ACCESS_DENIED'
      end
    from (${events}) event_rows,
      lateral (
        select case
            when waits then 'pending'
            when n > 195 then 'dead'
            when n > 180 then 'missing'
            else 'applied'
          end as outcome
      ) so_far
    on conflict (id) do nothing`,
  'metersync.event_payloads': `
    (id, payload)
    select event,
      jsonb_build_object(
        'company', jsonb_build_object('id', company_id, 'publicId', 'public'),
        'site', ${id('site', '1')},
        'filler', repeat('lorem ', 40))
    from (${events}) event_rows
    on conflict (id) do nothing`,
  'metersync.runs': `
    (run_id, company_id, resource, state, started_at, finished_at)
    select ${id('run', 'n')}, ${id('company')}, resource, 'complete', ${read}, ${read}
    from plot, generate_series(1, 4) n,
      unnest(array['connections', 'documents', 'usageData', 'meters', 'intervals']) resource`,
  'metersync.pages': `
    (run_id, company_id, resource, pass, asked, current_page, has_next, ids, read_at)
    select ${id('run')}, ${id('company')}, 'documents', 1, n, n, true, array['a', 'b'], ${read}
    from plot, generate_series(1, 10) n`,
  'metersync.also_listed': `
    (resource, record_id, company_id)
    select 'documents', ${id('document', 'n')}::text, md5('company ' || p + 1 || ' 1')::uuid
    from plot, generate_series(41, 50) n`,
  'metersync.listings': `
    (company_id, resource, proved_began)
    select ${id('company')}, resource, '2025-01-01'
    from plot, unnest('{documents,usageData,connections,meters}'::text[]) resource`,
  'metersync.rejected_records': `
    (resource, record_id, company_id, error, record)
    select 'documents', ${id('document', 'n')}, ${id('company')}, 'refused', '{}'
    from plot, generate_series(1, 10) n`,
  'metersync.deletes': `
    (run_id, company_id, resource, record_id, state, absent_since)
    select ${id('run')}, ${id('company')}, 'documents', ${id('document', 'n')}, 'applied', ${read}
    from plot, generate_series(1, 10) n`,
  'metersync.interval_fetches': `
    (meter_id, fetched)
    select 'meter ' || p || ' ' || n, '{[2024-01-01,2025-03-01]}'
    from plot, generate_series(1, ${perPlot.meters}) n`,
  'metersync.interval_reads': `
    (meter_id, span, began)
    select 'meter ' || p || ' ' || n, tstzrange(at, at + interval '1 day'), clock_timestamp()
    from plot, generate_series(1, ${perPlot.meters}) n, generate_series(timestamptz '2025-01-01', '2025-01-10', '1 day') at`,
  'ops.data_issues': `
    (check_name, severity, company_id, entity_type, entity_id, evidence)
    select 'bill_overlap', 'warning', ${id('company')}, 'document', ${id('document', 'n')}, '{}'
    from plot, generate_series(1, 10) n`,
} as const;

type Table = keyof typeof inserts;
const tables = Object.keys(inserts) as Table[];

/** Tables that grow with use. No statement may scan one of them. */
export const growingTables: readonly string[] = tables;

/** Inserts plots, numbered from `from`, with the rows of all tables or of some tables. */
export async function loadPlots(
  db: Executor,
  from: number,
  count: number,
  only: readonly Table[] = tables,
): Promise<void> {
  for (const table of only) await load(db, table, from, count);
}

/** Adds reconciles to plots. Each reconcile leaves parts of every company, one after the other. */
export async function loadReconciles(
  db: Executor,
  from: number,
  count: number,
  times: number,
): Promise<void> {
  const rows = `
    (run_id, company_id, resource, kind, state, started_at, finished_at)
    select md5('reconcile ' || n)::uuid, ${id('company')}, resource, 'reconcile', 'complete',
      ${read} - interval '1 hour' * n, ${read} - interval '1 hour' * n
    from generate_series(1, ${times}) n, plot, unnest(array['documents', 'usageData']) resource
    order by n, p`;
  await insertFor(db, from, count, 'metersync.runs', rows);
}

/** Notes in plots that somebody decided to keep records. Only the company of the records reads them. */
export async function loadKept(db: Executor, from: number, count: number): Promise<void> {
  const rows = `
    (run_id, company_id, resource, record_id, state, absent_since)
    select ${id('run')}, ${id('company')}, resource, record_id::text, state, ${read}
    from plot,
      generate_series(11, 20) n,
      lateral (
        values
          ('documents', ${id('document', 'n')}, 'rejected'),
          ('usageData', ${id('usage', 'n')}, 'undone'),
          ('connections', ${id('connection', 'n')}, 'undone')
      ) kept (resource, record_id, state)`;
  await insertFor(db, from, count, 'metersync.deletes', rows);
}

const load = (db: Executor, table: Table, from: number, count: number): Promise<void> =>
  insertFor(db, from, count, table, inserts[table]);

async function insertFor(
  db: Executor,
  from: number,
  count: number,
  table: Table,
  rows: string,
): Promise<void> {
  await db.execute(
    sql.raw(`with plot as materialized (
        select p, md5('company ' || p || ' 1')::uuid as company
        from generate_series(${from}, ${from + count - 1}) p
      )
      insert into ${table} ${rows}`),
  );
}

/** Analyses the plots at a moment when no event waits. */
export async function analyseAtRest(db: Executor, from: number, count: number): Promise<void> {
  await db.execute(sql`delete from metersync.journal where outcome = 'pending'`);
  await db.execute(sql`analyze`);
  await load(db, 'metersync.journal', from, count);
}
/** Creates the months of the readings, and turns autovacuum off. */
export async function prepareTables(db: Executor): Promise<void> {
  for (const month of months)
    await db.execute(sql`select metersync.ensure_interval_month(${`${month}-01T00:00:00Z`}::timestamptz)`);
  await eachTable(db, (table) => sql.raw(`alter table ${table} set (autovacuum_enabled = off)`));
}

/** Deletes statistics of `analyze` from the catalogue, because only Postgres 18 has functions for it. */
export async function forgetStatistics(db: Executor): Promise<void> {
  const ours = sql`relnamespace::regnamespace::text in (${schemas})`;
  await db.execute(sql`delete from pg_statistic using pg_class c where c.oid = starelid and ${ours}`);
  await db.execute(sql`
    update pg_class set relpages = 0, reltuples = -1, relallvisible = 0
    where ${ours} and relkind in ('r', 'i', 'p', 'I')`);
}

const schemas: SQL = sql`'utility', 'metersync', 'ops'`;

async function eachTable(db: Executor, statement: (table: string) => SQL): Promise<void> {
  const { rows } = await db.execute<{ name: string }>(sql`
    select format('%I.%I', relnamespace::regnamespace, relname) as name from pg_class
    where relkind = 'r' and relnamespace::regnamespace::text in (${schemas})`);
  for (const { name } of rows) await db.execute(statement(name));
}
