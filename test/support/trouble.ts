import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import type { Warehouse } from '../../db/connection/connect.ts';

/** Text of a customer that runs a script if a page takes it as markup, and reverses the text after it. */
export const hostile = `<img src=x onerror="document.title='taken'">\u202egnp`;

/** What is wrong in a warehouse of `fillTrouble`. */
export interface Trouble {
  readonly companies: readonly [string, string, string];
  readonly document: string;
  readonly connection: string;
  readonly runs: { readonly complete: string; readonly suspect: string; readonly running: string };
  readonly dead: string;
  readonly issue: number;
}

/** Fills a warehouse with everything that may need attention, and with hostile names. */
export async function fillTrouble({ db }: Warehouse): Promise<Trouble> {
  // In the order of their ids, in which some pages list them.
  const companies = [randomUUID(), randomUUID(), randomUUID()].sort() as [string, string, string];
  const [acme, , strange] = companies;
  const [document, connection] = [randomUUID(), randomUUID()];
  const runs = { complete: randomUUID(), suspect: randomUUID(), running: randomUUID() };
  await db.execute(sql`
    insert into utility.companies (id, raw, synced_at)
    values
      (${acme}, '{"name": "Acme Property Management", "externalId": "customer-17"}', now()),
      (${companies[1]}, '{"name": "Bergmann & Söhne Immobilien"}', now()),
      (${strange}, ${JSON.stringify({ name: hostile })}, now())`);
  await db.execute(sql`
    insert into utility.connections (id, company_id, raw, synced_at)
    select id::uuid, company_id::uuid,
      jsonb_build_object('datasource', datasource, 'status', status, 'created', now(), 'updated', now()), now()
    from (values
      (${connection}, ${acme}, 'Pacific Gas & Electric', 'PASSWORD_INCORRECT'),
      (gen_random_uuid()::text, ${acme}, 'Con Edison', 'CONNECTED'),
      (gen_random_uuid()::text, ${strange}, ${hostile}, 'NEW_PASSWORD_NEEDED')
    ) c (id, company_id, datasource, status)`);
  await db.execute(sql`
    insert into utility.documents (id, company_id, raw, synced_at)
    values (${document}, ${acme},
      jsonb_build_object('invoiceId', '4711', 'created', now() - interval '40 days', 'updated', now()), now())`);
  await fillRuns({ db }, companies, runs);
  await db.execute(sql`
    insert into metersync.deletes (run_id, company_id, resource, record_id, state, absent_since)
    select ${runs.suspect}, ${acme}, 'documents', gen_random_uuid()::text, 'quarantined', now()
    from generate_series(1, 60)`);
  await fillMonths({ db }, acme);
  await fillEvents({ db }, companies, document, connection);
  const { rows } = await db.execute<{ id: number }>(sql`
    insert into ops.data_issues (check_name, severity, company_id, entity_type, entity_id, subject, evidence)
    values
      ('amount_mismatch', 'error', ${acme}, 'document', ${document}, '',
        '{"current_charges": "120.50", "lines": "119.50", "currency": "USD"}'),
      ('late_bill', 'warning', ${acme}, 'meter', 'E-1001', '', '{"days_late": "12", "billed_until": "2026-08-31", "usual_days": "30"}'),
      ('unhealthy_connection', 'warning', ${acme}, 'connection', ${connection}, '', '{"status": "PASSWORD_INCORRECT", "what_to_do": "update the password of the connection"}'),
      ('unknown_unit', 'info', ${strange}, 'meter', ${hostile}, ${hostile}, '{"units": "furlongs"}')
    returning id::int`);
  return { companies, document, connection, runs, dead: 'msg_dead_1', issue: rows[0]?.id ?? 0 };
}

/** Fills in months of two sites. The second site lacks the bill of one month, and a part of another month. */
async function fillMonths({ db }: Pick<Warehouse, 'db'>, company: string): Promise<void> {
  const sites = [randomUUID(), randomUUID()] as const;
  await db.execute(sql`
    insert into utility.sites (id, company_id, raw, synced_at)
    values
      (${sites[0]}, ${company}, '{"name": "Boston Depot 2"}', now()),
      (${sites[1]}, ${company}, ${JSON.stringify({ name: hostile })}, now())`);
  await db.execute(sql`
    insert into metersync.monthly_usage
      (company_id, site_id, meter_id, datasource_type, month, units, usage, days_in_month, days_covered)
    select ${company}, site, 'E-' || n, 'ELECTRICITY', month, 'kWh',
      case when n = 2 and place = 5 then null else 1000.25 * place end, 30,
      case when n = 2 and place = 5 then 0 when n = 2 and place = 6 then 12 else 30 end
    from unnest(${sql.param(sites)}::uuid[]) with ordinality as s (site, n)
      cross join generate_series('2025-06-01'::timestamp, '2026-07-01', interval '1 month')
        with ordinality as m (month, place)`);
  await db.execute(sql`
    insert into metersync.monthly_cost (company_id, site_id, meter_id, datasource_type, currency, month, cost)
    select company_id, site_id, meter_id, datasource_type, 'USD', month, usage * 0.21
    from metersync.monthly_usage
    where usage is not null`);
}

async function fillRuns(
  { db }: Pick<Warehouse, 'db'>,
  companies: Trouble['companies'],
  runs: Trouble['runs'],
): Promise<void> {
  await db.execute(sql`
    insert into metersync.runs (run_id, kind, workflow_id, state, started_at, finished_at, rows_inserted,
      rows_changed, rows_unchanged, requests, rows_missed, drift, error, error_code)
    values
      (${runs.complete}, 'full', 'backfill-run/a', 'complete', now() - interval '26 hours', now() - interval '25 hours',
        120450, 310, 1200450, 48211, 4, 2, null, null),
      (${runs.suspect}, 'full', 'backfill-run/b', 'suspect', now() - interval '2 hours', now() - interval '1 hour',
        12, 3, 1320000, 48400, 0, 0, 'documents: 60 of 900 rows are gone at once', null),
      (${runs.running}, 'reconcile', 'reconcile/c', 'running', now() - interval '40 seconds', null, 0, 0, 0, 0, 0, 0,
        null, null)`);
  await db.execute(sql`
    insert into metersync.runs (run_id, company_id, resource, kind, state, started_at, finished_at, distinct_ids, error,
      error_code)
    select ${runs.suspect}, c.id, r.resource, 'full', r.state, now() - interval '2 hours', now() - interval '1 hour', 900,
      r.error, r.code
    from unnest(array[${companies[0]}, ${companies[1]}]::uuid[]) c (id)
      cross join (values
        ('connections', 'complete', null, null), ('meters', 'complete', null, null),
        ('documents', 'suspect', 'documents: 60 of 900 rows are gone at once', null),
        ('usageData', 'complete', null, null),
        ('intervals', 'failed', 'SERVICE_ACCESS_DENIED: the service answered 403 Forbidden', 'SERVICE_ACCESS_DENIED')
      ) r (resource, state, error, code)`);
}

async function fillEvents(
  { db }: Pick<Warehouse, 'db'>,
  [acme]: Trouble['companies'],
  document: string,
  connection: string,
): Promise<void> {
  await db.execute(sql`
    insert into metersync.journal (id, type, kind, record_id, company_id, occurred_at, received_at, recorded_at,
      outcome, queue, due_at, attempts, error, error_code, workflow_id, workflow_run_id)
    select 'msg_' || what || '_' || n, type, kind, record_id, ${acme}, now() - interval '3 hours',
      now() - make_interval(mins => n), now() - make_interval(mins => n), outcome,
      case when outcome = 'pending' then kind || '/' || ${acme} end, now() + interval '1 minute' * due_in,
      coalesce(attempts, 0), error, code, 'event/x', gen_random_uuid()
    from (values
      ('applied', 70, 'document.updated.v2', 'document', gen_random_uuid()::text, 'applied', null::int, null::int,
        null, null),
      ('pending', 3, 'document.created.v2', 'document', ${document}, 'pending', 10, 4,
        'SERVICE_ACCESS_DENIED: the service answered 403 Forbidden', 'SERVICE_ACCESS_DENIED'),
      ('waiting', 2, 'connection.updated.v2', 'connection', ${connection}, 'pending', 2, 2,
        'SERVICE_ERROR: the service answered 503', 'SERVICE_ERROR'),
      ('dead', 2, 'document.created.v2', 'ignored', null, 'dead', null, null,
        'EVENT_UNREADABLE: no updated', 'EVENT_UNREADABLE'),
      ('strange', 1, ${hostile}, 'ignored', ${hostile}, 'ignored', null, null, null, null)
    ) e (what, count, type, kind, record_id, outcome, due_in, attempts, error, code)
      cross join generate_series(1, e.count) n`);
  await db.execute(sql`
    insert into metersync.event_payloads (id, payload)
    select id, ${JSON.stringify({ note: hostile })}::jsonb from metersync.journal`);
}
