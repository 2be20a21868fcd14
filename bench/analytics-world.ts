import type pg from 'pg';

/** The data of each company in the analytics measure. */
interface AnalyticsShape {
  /** Number of bills. There is one for each month and meter. */
  readonly documents: number;
  readonly months: number;
  /** Meters with readings each quarter-hour, and the readings of each. */
  readonly intervalMeters: number;
  readonly readings: number;
  /** Whether Postgres analyses the tables after they are filled. The default is true. */
  readonly analysed?: boolean;
}

const firstMonth = '2023-01-01';
const firstReading = '2025-01-01 00:00:00+00';

/**
 * Fills the tables with companies number `from` to `to`, both included, in set-based statements. Of a hundred
 * bills, one is superseded, one is deleted, two overlap a neighbour, two were corrected once, and five are
 * estimated. Readings are inserted by day and meter, as synced ranges arrive. One day in fifty is missing.
 */
export async function fillAnalytics(
  client: pg.Client,
  shape: AnalyticsShape,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<void> {
  const meters = Math.ceil(shape.documents / shape.months);
  await client.query(`
    set synchronous_commit = off;
    create temp table if not exists world_meters (company int, meter int, company_id uuid, site_id uuid, meter_id text);
    truncate world_meters;
    insert into world_meters
      select c, m, md5('company' || c)::uuid, md5('site' || c || '/' || m % 5)::uuid, md5('meter' || c || '/' || m)::uuid::text
      from generate_series(${from}, ${to}) c, generate_series(0, ${meters - 1}) m;
    insert into utility.companies (id, raw, synced_at)
      select distinct company_id, jsonb_build_object('externalId', 'external-' || company, 'name', 'Company ' || company), now()
      from world_meters;
    insert into utility.sites (id, company_id, raw, synced_at)
      select distinct site_id, company_id, jsonb_build_object('name', 'Site ' || meter % 5), now() from world_meters;
    insert into ops.site_overrides (site_id, time_zone)
      select distinct site_id, 'America/New_York' from world_meters;
    insert into utility.meters (id, company_id, raw, synced_at)
      select meter_id, company_id, jsonb_build_object('id', meter_id, 'site', site_id, 'account', 'account-' || meter,
        'datasourceType', case when meter % 4 = 3 then 'GAS' else 'ELECTRICITY' end, 'netMeteringType', null), now()
      from world_meters;
    insert into utility.connections (id, company_id, raw, synced_at)
      select md5('connection' || company || '/' || meter % 3)::uuid, company_id,
        jsonb_build_object('datasource', 'Provider ' || meter % 3,
          'status', case when meter % 3 = 0 and company % 10 = 1 then 'MFA_TOKEN_EXPIRED' else 'CONNECTED' end,
          'created', now(), 'updated', now(), 'accounts', jsonb_agg(jsonb_build_object('id', 'account-' || meter,
          'accountNumber', 'A-' || company || '-' || meter, 'meters', jsonb_build_array(meter_id)))), now()
      from world_meters group by company, company_id, meter % 3;`);
  await client.query(documents(shape));
  await client.query(usage);
  await client.query(corrections);
  await client.query('drop table world_bills');
  await fillReadings(client, shape);
  await client.query('reset synchronous_commit');
  if (shape.analysed ?? true) await client.query('vacuum analyze');
}

const documents = ({ documents: wanted, months }: AnalyticsShape): string => `
  create temp table world_bills as
    select w.*, n, md5('bill' || company || '/' || meter || '/' || n)::uuid as id,
      (date '${firstMonth}' + n * interval '1 month')::date + meter % 28 as first,
      ((date '${firstMonth}' + (n + 1) * interval '1 month')::date + meter % 28 - case when (meter + n) % 50 = 0 then -3 else 1 end)
        as last,
      round((abs(hashint4(company * 100000 + meter * 100 + n)) % 1000000) / 100.0, 2) as amount
    from world_meters w, generate_series(0, ${months - 1}) n
    where meter * ${months} + n < ${wanted};
  insert into utility.documents (id, company_id, raw, synced_at, absent_since, absent_by)
    select id, company_id,
      jsonb_build_object('id', id, 'site', site_id, 'created', last + interval '3 days', 'updated', last + interval '3 days',
        'utilityCompany', 'Provider ' || meter % 3,
        'invoiceId', 'INV-' || meter || '-' || n, 'startDate', first, 'billDate', last, 'dueDate', last + 20,
        'chargesUnits', case when company % 7 = 0 then 'CAD' else 'USD' end, 'totalCharges', amount::text,
        'currentCharges', amount::text, 'taxCharges', round(amount / 20, 2)::text, 'sourceType', 'WEB', 'status', 'PROCESSED',
        'isFlagged', false, 'fileName', 'bill-' || id || '.pdf',
        'revisedDocumentId', case when (meter * 7 + n) % 100 = 99 and n < ${months - 1}
          then md5('bill' || company || '/' || meter || '/' || n + 1) end,
        'lineItems', jsonb_build_array(
          jsonb_build_object('description', 'Energy', 'chargeType', 'USAGE', 'electricityChargeType', 'SUPPLY',
            'quantity', (amount * 8)::text, 'quantityUnits', 'kWh', 'rate', '0.08', 'totalCharge', round(amount * 0.7, 2)::text),
          jsonb_build_object('description', 'Delivery', 'chargeType', 'USAGE', 'electricityChargeType', 'DELIVERY',
            'totalCharge', round(amount * 0.2, 2)::text),
          jsonb_build_object('description', 'Customer charge', 'chargeType', 'FIXED',
            'totalCharge', (amount - round(amount * 0.7, 2) - round(amount * 0.2, 2))::text)),
        'usageData', jsonb_build_array(jsonb_build_object('id', md5('usage' || id), 'meter', meter_id, 'site', site_id,
          'isEstimated', n % 20 = 0, 'identifiers', jsonb_build_array(
            jsonb_build_object('name', 'ACCOUNT', 'value', 'A-' || company || '-' || meter)),
          'startDate', first, 'endDate', last, 'usage', (amount * 8)::text, 'usageUnits', case when meter % 4 = 3 then 'therm' else 'kWh' end))),
      now(), case when (meter * 7 + n) % 100 = 50 then now() end, case when (meter * 7 + n) % 100 = 50 then 'absent' end
    from world_bills`;

const usage = `
  insert into utility.usage_data (id, company_id, document_id, raw, synced_at)
    select md5('usage' || id)::uuid, company_id, id,
      jsonb_build_object('id', md5('usage' || id), 'document', id, 'meter', meter_id, 'startDate', first, 'endDate', last,
        'usage', (amount * 8)::text, 'usageUnits', case when meter % 4 = 3 then 'therm' else 'kWh' end,
        'created', last + interval '3 days', 'updated', last + interval '3 days', 'isEstimated', n % 20 = 0, 'exclusion', false,
        'billedDemand', round(amount / 100, 2)::text, 'tariff', 'T-' || meter % 3, 'utilityName', 'Provider ' || meter % 3),
      now()
    from world_bills`;

/** Earlier states of the two bills in a hundred that were corrected. */
const corrections = `
  insert into metersync.earlier_states (resource, id, company_id, site_id, revised_document_id, created, updated, raw_updated, raw, api_version, first_synced_at,
      synced_at, valid_from, valid_to, ended_by_kind, ended_by)
    select 'documents', d.id, d.company_id, d.site_id, d.revised_document_id, d.created, d.updated, d.raw_updated,
      d.raw || jsonb_build_object('currentCharges', (b.amount + 1)::text), d.api_version, d.first_synced_at, d.synced_at,
      d.created, d.created + interval '10 days', 'event', 'msg_' || b.n
    from world_bills b join utility.documents d on d.id = b.id
    where (b.meter * 7 + b.n) % 50 = 7`;

/** Inserts readings day by day, each day for all meters. */
async function fillReadings(client: pg.Client, { intervalMeters, readings }: AnalyticsShape): Promise<void> {
  if (intervalMeters === 0) return;
  const days = Math.ceil(readings / 96);
  await client.query(`select metersync.ensure_interval_month(timestamptz '${firstReading}' + n * interval '1 month')
    from generate_series(0, ${Math.ceil(days / 28)}) n`);
  for (let day = 0; day < days; day++) {
    await client.query(`
      insert into utility.intervals (meter_id, start_at, granularity_seconds, usage_units, usage, quality, updated, synced_at)
      select w.meter_id, at, 900, 'kWh', round((10 + 8 * sin(q / 96.0 * 6.2832) + (w.company + q) % 5)::numeric, 3),
        case when q % 40 = 0 then 'ESTIMATED' else 'ACTUAL' end, at + interval '1 day', now()
      from world_meters w cross join generate_series(0, ${Math.min(95, readings - day * 96 - 1)}) q
        cross join lateral (
          select timestamptz '${firstReading}' + ${day} * interval '1 day' + q * interval '15 minutes' as at) t
      where w.meter < ${intervalMeters} and (w.company + w.meter + ${day}) % 50 <> 0
      order by w.company, w.meter, q`);
  }
}

/** A join of several views by columns that each of them has. */
export interface Join {
  readonly views: readonly string[];
  readonly key: readonly string[];
}

/** Columns that distinguish rows in several views, the most distinctive first. */
const keys: readonly (readonly string[])[] = [
  ['bill_id', 'meter_id'],
  ['bill_id'],
  ['meter_id', 'month'],
  ['site_id', 'month'],
  ['connection_id'],
];

/** Views with a row for each meter or site, which the rows of other views name. */
const named: Readonly<Record<string, string>> = { meters: 'meter_id', sites: 'site_id' };

/** Views of readings, which this world lacks. They need a meter or a time span. */
const ofReadings = /^interval_|^load_profile$|^bill_interval_comparison$/;

/** Lists all pairs and triples of views of analytics that have a key in common. */
export async function joinsOfViews(client: pg.Client): Promise<Join[]> {
  const { rows } = await client.query<{ view: string; columns: string[] }>(`
    select c.relname as view, array_agg(a.attname::text) as columns from pg_class c
      join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
    where c.relkind = 'v' and c.relnamespace = 'analytics'::regnamespace group by 1 order by 1`);
  const views = rows.filter(({ view }) => !ofReadings.test(view));
  const having = (key: readonly string[]) =>
    views.filter(({ columns }) => key.every((name) => columns.includes(name))).map(({ view }) => view);
  const joins = new Map<string, Join>();
  const add = (join: Join) => {
    const name = join.views.toSorted().join();
    if (!joins.has(name)) joins.set(name, join);
  };
  for (const key of keys)
    for (const some of [...pairs(having(key)), ...triples(having(key))]) add({ views: some, key });
  for (const [view, column] of Object.entries(named))
    for (const other of having([column]).filter((name) => name !== view))
      add({ views: [view, other], key: [column] });
  return [...joins.values()];
}

const pairs = (all: readonly string[]): string[][] =>
  all.flatMap((one, at) => all.slice(at + 1).map((other) => [one, other]));

const triples = (all: readonly string[]): string[][] =>
  all.flatMap((one, at) => pairs(all.slice(at + 1)).map((others) => [one, ...others]));

/** Returns a statement that counts the rows of a join, for all companies or for one. */
export function statementOf({ views: [first, ...others], key }: Join, companyId?: string): string {
  const columns = companyId === undefined ? key : ['company_id', ...key];
  const joined = others.map((view) => `join analytics.${view} using (${columns.join(', ')})`);
  const where = companyId === undefined ? '' : `where company_id = '${companyId}'`;
  return `select count(*) from analytics.${first} ${joined.join(' ')} ${where}`;
}
