import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { unnested } from '../../../db/connection/arrays.ts';
import { cases } from '../../support/cases.ts';
import { forFile } from '../../support/for-file.ts';
import { rowOf, writeRecords } from '../../support/pages.ts';
import { createWarehouse } from '../../support/warehouse.ts';
import { type Hint, mergeHint, mergeRead, type Read, type Registers, shown, unknown } from './rules.ts';

const warehouse = await forFile(createWarehouse());

/** The lag of the rules, which is two hours in the warehouse. */
const lag = 10;
const start = Date.parse('2026-03-01T00:00:00Z');
const timeOf = (units: number): string => new Date(start + units * 720_000).toISOString();

const ids = { A: randomUUID(), B: randomUUID() };
type Company = keyof typeof ids;
/** The contents of records, by the column that shows them. */
const createdOf = { x: '2025-01-01T00:00:00.000Z', y: '2025-02-01T00:00:00.000Z' };
type Content = keyof typeof createdOf;

const time = fc.integer({ min: 0, max: 40 });
const company = fc.constantFrom<Company>('A', 'B');
const content = fc.constantFrom<Content>('x', 'y');
const read = fc.record({ updated: fc.option(time), began: time, content, named: fc.option(company) });
const hint = fc.record({ updated: time, deletes: fc.boolean(), content, company, came: time });
const written = fc.record({
  read: fc.option(read),
  hint: fc.option(hint),
  isAbsent: fc.boolean(),
  /** Registers that the row had before, and that the others replace. */
  before: fc.option(fc.record({ read: fc.option(read), hint: fc.option(hint) })),
});
type Written = typeof written extends fc.Arbitrary<infer T> ? T : never;

const recordOf = (one: Pick<Read, 'updated' | 'content' | 'named'>) =>
  JSON.stringify({
    created: createdOf[one.content as Content],
    ...(one.updated === null ? {} : { updated: timeOf(one.updated) }),
    ...(one.named === null ? {} : { company: { id: ids[one.named as Company] } }),
  });

/** What the columns have to say, by the rules as a function. */
function expected({ read, hint, isAbsent }: Written) {
  const eventId = 'event';
  const start: Registers =
    hint === null ? unknown : mergeHint(unknown, { ...hint, eventId, settled: null } satisfies Hint);
  const registers = read === null ? start : mergeRead(start, { ...read, lister: 'A' }, lag);
  const state = shown(registers, lag);
  if (state.deleted && state.since !== null)
    return { deleted_at: timeOf(state.since), deleted_reason: 'event' };
  const absence = isAbsent
    ? { deleted_at: timeOf(100), deleted_reason: 'absent' }
    : { deleted_at: null, deleted_reason: null };
  if (state.deleted) return absence;
  return {
    ...absence,
    created: createdOf[state.content as Content],
    updated: state.updated === null ? null : timeOf(state.updated),
    company_id: ids[state.company as Company],
  };
}

const columns = [
  ['id', 'text', (row: Row) => row.id],
  ['raw', 'text', ({ read }: Row) => read && recordOf(read)],
  ['began', 'timestamptz', ({ read }: Row) => read && timeOf(read.began)],
  [
    'hint',
    'text',
    ({ hint }: Row) => hint && recordOf({ ...hint, updated: hint.updated, named: hint.company }),
  ],
  ['event_id', 'text', ({ hint }: Row) => hint && 'event'],
  ['announced', 'timestamptz', ({ hint }: Row) => hint && timeOf(hint.updated)],
  ['deletes', 'boolean', ({ hint }: Row) => hint?.deletes ?? null],
  ['came', 'timestamptz', ({ hint }: Row) => hint && timeOf(hint.came)],
  ['absent_since', 'timestamptz', ({ isAbsent }: Row) => (isAbsent ? timeOf(100) : null)],
] as const;
type Row = Written & { readonly id: string };

/** Writes registers as they are, and reads the columns that the triggers of a table compute. */
async function shownBy(table: 'documents' | 'connections', rows: readonly Row[]) {
  const { db } = warehouse;
  const target = sql.raw(`utility.${table}`);
  const given = (some: readonly Row[]) => unnested('given', some, columns);
  const registers = sql`given.id::uuid, given.raw::jsonb, ${ids.A}::uuid, given.began, given.event_id,
    given.hint::jsonb, given.announced, given.deletes, given.came, given.absent_since,
    case when given.absent_since is not null then 'absent' end`;
  const names = sql`id, raw, company_id, synced_at, hint_event_id, hint, hint_updated, hint_deletes, hint_came,
    absent_since, absent_by`;
  const first = rows.map((row) => ({ ...row, ...row.before, isAbsent: false }));
  await db.execute(sql`insert into ${target} (${names}) select ${registers} from ${given(first)}`);
  await db.execute(sql`
    update ${target} t set (${names}) = (select ${registers}) from ${given(rows)} where t.id = given.id::uuid`);
  return await columnsOf(table, rows);
}

/** Returns what the columns of rows say, by id. */
async function columnsOf(table: 'documents' | 'connections', rows: readonly Row[]) {
  const iso = (column: string) =>
    sql.raw(`to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as ${column}`);
  const { rows: found } = await warehouse.db.execute<{ id: string }>(sql`
    select id, company_id, ${iso('created')}, ${iso('updated')}, ${iso('deleted_at')}, deleted_reason
    from ${sql.raw(`utility.${table}`)}
    where id = any(${sql.param(rows.map(({ id }) => id))})`);
  return new Map(found.map(({ id, ...row }) => [id, row]));
}

test.each(['documents', 'connections'] as const)(
  'the columns of %s say what the rules say, whatever the registers held before',
  async (table) => {
    const samples = fc.sample(written, cases(1_000, 20_000));
    for (let from = 0; from < samples.length; from += 1_000) {
      const rows = samples.slice(from, from + 1_000).map((one) => ({ ...one, id: randomUUID() }));
      const found = await shownBy(table, rows);
      for (const { id, ...one } of rows)
        expect(found.get(id), JSON.stringify(one)).toMatchObject(expected({ ...one }));
    }
  },
);

test.each(['documents', 'connections'] as const)(
  'a record of %s that was gone and is back shows what was read, and no longer what an event announced',
  async (table) => {
    const gone = fc.sample(written, cases(500, 5_000)).map((one) => ({
      ...one,
      id: randomUUID(),
      isAbsent: true,
    }));
    await shownBy(table, gone);
    await warehouse.db.execute(sql`
      update ${sql.raw(`utility.${table}`)} set absent_since = null, absent_by = null
      where absent_since is not null`);
    const found = await columnsOf(table, gone);
    for (const one of gone) {
      const ended = one.read !== null && one.hint?.deletes === false ? { hint: null } : {};
      const { id, ...back } = { ...one, isAbsent: false, ...ended };
      expect(found.get(id), JSON.stringify(one)).toMatchObject(expected(back));
    }
  },
);

test.each(['documents', 'connections', 'usageData', 'meters'] as const)(
  'the row of %s does not depend on the order in which its reads are written',
  async (resource) => {
    const reads = fc
      .uniqueArray(read, { minLength: 2, maxLength: 4, selector: ({ began }) => began })
      .chain((all) =>
        fc.tuple(
          fc.shuffledSubarray(all, { minLength: all.length }),
          fc.shuffledSubarray([...all, ...all], { minLength: 2 * all.length }),
        ),
      );
    await fc.assert(
      fc.asyncProperty(reads, async (orders) => {
        const rows = [];
        for (const order of orders) {
          const id = randomUUID();
          for (const one of order) {
            const record = { id, ...JSON.parse(recordOf({ ...one, named: null })), began: one.began };
            await writeRecords(warehouse, resource, [record], {
              companyId: ids.A,
              readAt: timeOf(one.began),
            });
          }
          rows.push(await rowOf(warehouse, resource, id));
        }
        const [one, other] = rows.map((row) => ({
          ...(row?.raw as object),
          id: '',
          deleted_at: row?.deleted_at,
        }));
        expect(one).toEqual(other);
      }),
      { numRuns: cases(25, 1_000) },
    );
  },
);
