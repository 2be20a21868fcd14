import { sql } from 'drizzle-orm';
import type { Warehouse } from '../../db/connection/connect.ts';

/** Columns of times that are data, and not readings of the warehouse's clock. */
const timesOfRecords = [
  ...['created', 'updated', 'raw_updated', 'hint_updated', 'occurred_at', 'range_start', 'range_end'],
  ...['start_at', 'starts_from', 'starts_before', 'at'],
];

/** Columns of the times until which something waits. */
const waits = ['due_at', 'next_probe_at'];

/** Tables of records, whose states are kept. */
const kept = ['companies', 'sites', 'connections', 'meters', 'documents', 'usage_data'];

/**
 * Adds a schema `model` to a warehouse. It notes how often each event is settled, and each state that a row of
 * a record shows, and it has a function that lets time pass.
 */
export async function keepBooks({ db }: Warehouse): Promise<void> {
  const { rows } = await db.execute<{ kept: boolean }>(
    sql`select to_regclass('model.states') is not null as kept`,
  );
  if (rows[0]?.kept) return await emptyBooks(db);
  await db.execute(
    sql.raw(`
    create schema model;
    create table model.settlings (event_id text not null, record uuid, too_early boolean);
    create table model.states (
      number bigint generated always as identity,
      relation text not null,
      id text not null,
      state jsonb not null
    );
    create function model.note_settled() returns trigger language plpgsql as $$
    begin
      insert into model.settlings
      select new.id, r.id, new.outcome = 'applied' and r.raw_updated < new.occurred_at
      from (select) one left join (
        select id, raw_updated from utility.documents where deleted_at is null
        union all select id, raw_updated from utility.connections where deleted_at is null
      ) r on new.kind in ('document', 'connection') and r.id::text = new.record_id;
      return null;
    end $$;
    create trigger settled_at_once after insert on metersync.journal for each row
      when (new.outcome in ('applied', 'superseded', 'ignored')) execute function model.note_settled();
    create trigger settled after update on metersync.journal for each row
      when (old.outcome is distinct from new.outcome and new.outcome in ('applied', 'superseded', 'ignored'))
      execute function model.note_settled();
    create function model.shown(of jsonb) returns jsonb language sql immutable as $$
      select jsonb_object_agg(key, value) from jsonb_each(of)
      where key in ('company_id', 'site_id', 'document_id', 'meter_id', 'external_id', 'public_id', 'name',
        'datasource', 'status', 'url', 'account_id', 'datasource_type', 'start_date', 'end_date', 'usage',
        'usage_units', 'raw', 'api_version', 'deleted_at')
    $$;
    create function model.note_state() returns trigger language plpgsql as $$
    begin
      if TG_OP = 'INSERT' or model.shown(to_jsonb(old)) <> model.shown(to_jsonb(new)) then
        insert into model.states (relation, id, state)
        values (TG_TABLE_NAME, new.id::text, model.shown(to_jsonb(new)));
      end if;
      return null;
    end $$;
    ${kept
      .map(
        (table) => `create trigger model_state after insert or update on utility.${table}
      for each row execute function model.note_state();`,
      )
      .join('\n')}
    create function model.pass(passed interval, everything boolean) returns void language plpgsql as $$
    declare
      found record;
    begin
      for found in
        select a.attrelid::regclass as relation,
          string_agg(format('%1$I = %1$I - %2$L::interval', a.attname, passed), ', ') as changes
        from pg_attribute a join pg_class c on c.oid = a.attrelid
        where c.relnamespace in ('utility'::regnamespace, 'metersync'::regnamespace)
          and c.relkind in ('r', 'p') and not c.relispartition
          and a.atttypid = 'timestamptz'::regtype and a.attgenerated = '' and not a.attisdropped
          and a.attname <> all (array[${quoted(timesOfRecords)}])
          and (everything or a.attname = any (array[${quoted(waits)}]))
        group by 1
      loop
        execute format('update %s set %s', found.relation, found.changes);
      end loop;
    end $$`),
  );
}

const quoted = (names: readonly string[]): string => names.map((name) => `'${name}'`).join();

async function emptyBooks(db: Warehouse['db']): Promise<void> {
  await db.execute(sql`truncate model.settlings, model.states`);
}
