import { createHash, randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import type pg from 'pg';
import { afterAll, beforeAll, expect, onTestFailed, test } from 'vitest';
import { keepMonths } from '../../db/months.ts';
import { BilledCompany } from '../support/bills.ts';
import { cases } from '../support/cases.ts';
import { createWarehouse } from '../support/warehouse.ts';

let warehouse: Awaited<ReturnType<typeof createWarehouse>>;
/** Sessions of a writer and of one that keeps months. All tests share them: a new one plans for a second. */
let writer: pg.PoolClient;
let keeper: pg.PoolClient;
beforeAll(async () => {
  warehouse = await createWarehouse();
  [writer, keeper] = await Promise.all([warehouse.pool.connect(), warehouse.pool.connect()]);
});
afterAll(async () => {
  for (const session of [writer, keeper]) session?.release(true);
  await warehouse.drop();
});

const seed = Number(process.env.SEED ?? 20_261_123);
const keepAll = (companiesMax = 1_000) => keepMonths(warehouse.db, { companiesMax, quietSeconds: 0 });
const run = (statement: string) => warehouse.db.execute(sql.raw(statement));

/** Views whose rows are kept, each with the columns that it shows and its table does not have. */
const shownBeside: Readonly<Record<string, readonly string[]>> = {
  monthly_usage: ['commodity'],
  monthly_usage_by_site: ['commodity'],
  monthly_usage_by_company: ['commodity'],
  monthly_cost: ['commodity'],
  monthly_cost_by_site: [],
  monthly_cost_by_company: [],
  monthly_by_site: ['company', 'site', 'datasource_type'],
};
const rowsOf = (schema: string, suffix: string) =>
  Object.entries(shownBeside)
    .map(
      ([view, beside]) =>
        `select '${view}', (to_jsonb(m) - '{${beside}}'::text[])::text from ${schema}.${view}${suffix} m`,
    )
    .join(' union all ');

/**
 * Counts rows of views of months that differ from the same worked out from the records. Sums are worked out
 * from the views of their months, which are compared as well.
 */
async function differing(): Promise<number> {
  // Its plan takes longer than its work: a session keeps it.
  const { rows } = await warehouse.pool.query<{ rows: number }>({
    name: 'differing',
    text: `
      with shown as (${rowsOf('analytics', '')}),
      worked_out as (${rowsOf('metersync', '_now')}),
      differing as (
        (select * from shown except all select * from worked_out)
        union all
        (select * from worked_out except all select * from shown)
      )
      select count(*)::int as rows from differing`,
  });
  return rows[0]?.rows ?? 0;
}

const kept = async (): Promise<string[]> => {
  const { rows } = await run('select company_id as id from metersync.kept_companies');
  return rows.map(({ id }) => id as string);
};

const place = fc.nat(2);
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('bill' as const),
      owner: place,
      bill: place,
      /** The owner of the meter, and undefined for none. */
      meter: fc.option(place, { nil: undefined }),
      start: fc.integer({ min: 0, max: 900 }),
      days: fc.integer({ min: 0, max: 70 }),
      usage: fc.integer({ min: -50, max: 500 }),
      successor: fc.option(fc.tuple(place, place), { nil: undefined }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('meter' as const), meter: place, owner: fc.option(place) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom('tombstone' as const, 'move' as const, 'remove' as const),
      of: fc.constantFrom('documents' as const, 'usage_data' as const),
      owner: place,
      bill: place,
      to: place,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('unit' as const), factor: fc.integer({ min: 1, max: 9 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('views' as const) }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('keep' as const), companiesMax: fc.integer({ min: 1, max: 4 }) }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** A history of three companies, whose meters and bills may name one another's. */
class History {
  readonly #name = randomUUID();
  readonly #idOf = (...parts: readonly (string | number)[]) =>
    createHash('md5')
      .update([this.#name, ...parts].join(' '))
      .digest('hex')
      .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  readonly company = (at: number) => this.#idOf('company', at);
  readonly #bill = (owner: number, bill: number) => this.#idOf('bill', owner, bill);

  /** The statements of a step; it may change nothing. */
  statements(one: Step): readonly string[] {
    switch (one.do) {
      case 'bill':
        return this.#write(one);
      case 'meter': {
        const owner = one.owner === null ? 'null' : `'${this.company(one.owner)}'`;
        return [
          `insert into utility.meters (id, company_id, datasource_type, raw)
            values ('${this.#idOf('meter', one.meter)}', ${owner}, 'WATER', '{}')
            on conflict (id) do update set company_id = excluded.company_id`,
        ];
      }
      case 'tombstone':
        return [
          `update utility.${one.of} set deleted_at = case when deleted_at is null then now() end
          where ${this.#is(one)}`,
        ];
      case 'move':
        return [`update utility.${one.of} set company_id = '${this.company(one.to)}' where ${this.#is(one)}`];
      case 'remove':
        return [`delete from utility.${one.of} where ${this.#is(one)}`];
      case 'unit':
        return [
          `insert into ops.unit_factors (units, datasource_type, dimension, standard_units, factor, source)
          values ('teu', '', 'mass', 'kg', ${one.factor}, 'test')
          on conflict (units, datasource_type) do update set factor = excluded.factor`,
        ];
      case 'views':
        return ['insert into metersync.company_changes (company_id) values (null)'];
      case 'keep':
        return [];
    }
  }

  #is = ({ of, owner, bill }: Step & { do: 'move' | 'tombstone' | 'remove' }): string =>
    `${of === 'documents' ? 'id' : 'document_id'} = '${this.#bill(owner, bill)}'`;

  #write({ owner, bill, meter, start, days, usage, successor }: Step & { do: 'bill' }): readonly string[] {
    const id = this.#bill(owner, bill);
    const company = this.company(owner);
    const meterId = meter === undefined ? 'null' : `'${this.#idOf('meter', meter)}'`;
    const raw = {
      accountNumber: 'A-1',
      currentCharges: String(usage),
      chargesUnits: 'USD',
      revisedDocumentId: successor === undefined ? null : this.#bill(...successor),
    };
    return [
      `insert into utility.documents (id, company_id, created, raw)
        values ('${id}', '${company}', date '2025-01-01' + ${start}, '${JSON.stringify(raw)}')
        on conflict (id) do update set raw = excluded.raw, created = excluded.created`,
      `insert into utility.usage_data
          (id, company_id, document_id, meter_id, start_date, end_date, usage, usage_units, raw)
        values ('${this.#idOf('usage', id)}', '${company}', '${id}', ${meterId}, date '2025-01-01' + ${start},
          date '2025-01-01' + ${start + days}, ${usage}, 'teu', '{"datasourceType": "WATER"}')
        on conflict (id) do update set meter_id = excluded.meter_id, start_date = excluded.start_date,
          end_date = excluded.end_date, usage = excluded.usage`,
    ];
  }
}

test(`months are at every moment as if worked out from nothing, whatever is written and kept (seed ${seed})`, {
  timeout: 120_000,
}, async () => {
  let everKept = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 20 }), async (steps) => {
      await run('truncate utility.usage_data, utility.documents, utility.meters');
      const history = new History();
      for (const one of steps) {
        for (const statement of history.statements(one)) await run(statement);
        if (one.do === 'keep') await keepAll(one.companiesMax);
        expect(await differing()).toBe(0);
        everKept += (await kept()).length;
      }
    }),
    { seed, numRuns: cases(8, 200) },
  );
  expect(everKept).toBeGreaterThan(0);
});

async function billedCompany(
  more: Readonly<Record<string, string>> = {},
): Promise<{ company: BilledCompany; meterId: string }> {
  const company = new BilledCompany(warehouse);
  const meterId = `${company.id}/1`;
  await company.add({ [meterId]: {} });
  const usage = { meterId, start: '2025-01-10', end: '2025-02-09', usage: '310', ...more };
  await company.bill([{ billed: 1, cost: '10', usage: [usage] }]);
  return { company, meterId };
}

/** All orders in which the steps of two sides can come. */
const orders = (left: readonly string[], right: readonly string[]): string[][] =>
  left.length === 0 || right.length === 0
    ? [[...left, ...right]]
    : [
        ...orders(left.slice(1), right).map((rest) => [left[0] ?? '', ...rest]),
        ...orders(left, right.slice(1)).map((rest) => [right[0] ?? '', ...rest]),
      ];

const changes = {
  'a change of a bill': (id: string) =>
    `update utility.usage_data set usage = usage + 1 where company_id = '${id}'`,
  'a first bill': (
    id: string,
  ) => `insert into utility.usage_data (id, company_id, start_date, end_date, usage, usage_units, raw)
    values (gen_random_uuid(), '${id}', '2025-03-01', '2025-04-02', 5, 'kWh', '{}')`,
  'a change of a unit': () => `update ops.unit_factors set factor = factor * 1.01 where units = 'kWh'`,
};

test.each(
  Object.entries(changes).flatMap(([name, change]) =>
    orders(['writes', 'commits'], ['keeps', 'ends']).map(
      (order) => [name, order.join(', '), change, order] as const,
    ),
  ),
)('%s, and months that are kept meanwhile: %s', async (name, _, change, order) => {
  const { company } =
    name === 'a first bill' ? { company: new BilledCompany(warehouse) } : await billedCompany();
  // Without any meter missing records would count as there.
  await billedCompany();
  onTestFailed(async () => {
    for (const session of [writer, keeper]) await session.query('rollback');
  });
  const does: Readonly<Record<string, () => Promise<unknown>>> = {
    writes: () => writer.query(`begin; ${change(company.id)}`),
    commits: () => writer.query('commit'),
    keeps: () => keeper.query(`begin; select metersync.keep_months(1000, '0')`),
    ends: () => keeper.query('commit'),
  };
  for (const step of order) {
    await does[step]?.();
    expect(await differing(), step).toBe(0);
  }
  await keepAll();
  expect(await differing()).toBe(0);
  expect(await kept()).toContain(company.id);
});

test('months that stay the same are not written again', async () => {
  const { company } = await billedCompany();
  await keepAll();
  const places = async () => {
    const ofViews = Object.keys(shownBeside).map(
      (view) =>
        `select '${view}', ctid, xmin, month from metersync.${view} where company_id = '${company.id}'`,
    );
    return (await run(`${ofViews.join(' union all ')} order by 1, month`)).rows;
  };
  const before = await places();
  expect(before).toHaveLength(2 * Object.keys(shownBeside).length);
  await run(
    `update utility.usage_data set raw = raw || '{"tariff": "T"}' where company_id = '${company.id}'`,
  );
  expect(await kept()).not.toContain(company.id);
  expect(await keepAll()).toBe(1);
  expect(await kept()).toContain(company.id);
  expect(await places()).toEqual(before);
});

test('a write that changes no month leaves a company as it is', async () => {
  const { company } = await billedCompany();
  await keepAll();
  await run(
    `update utility.documents set usage_read_at = now(), synced_at = now() where company_id = '${company.id}'`,
  );
  expect(await kept()).toContain(company.id);
  expect(await keepAll()).toBe(0);
});

test('months between two bills hold until the month ends, and are worked out after it', async () => {
  const { company, meterId } = await billedCompany();
  await company.bill([
    { billed: 2, usage: [{ meterId, start: '2030-01-01', end: '2030-01-31', usage: '1' }] },
  ]);
  await keepAll();
  expect(await kept()).toContain(company.id);
  const until =
    await run(`select valid_until = date_trunc('month', current_date) + interval '1 month' as is_next_month
    from metersync.company_months where company_id = '${company.id}'`);
  expect(until.rows).toEqual([{ is_next_month: true }]);
  // As if it had been kept a month ago: a month is missing.
  await run(
    `update metersync.company_months set valid_until = current_date where company_id = '${company.id}'`,
  );
  for (const view of Object.keys(shownBeside))
    await run(
      `delete from metersync.${view} where company_id = '${company.id}' and month = date_trunc('month', current_date)`,
    );
  expect(await differing()).toBe(0);
  expect(await keepAll()).toBe(1);
  expect(await kept()).toContain(company.id);
  expect(await differing()).toBe(0);
});

test('a warehouse without notes, as a copy is, shows all months', async () => {
  await run('truncate utility.usage_data, utility.documents');
  await billedCompany();
  await keepAll();
  await run('truncate metersync.company_changes, metersync.company_months');
  expect(await differing()).toBe(0);
  expect(await keepAll()).toBe(0);
});

test('records without a company have months', async () => {
  await run(`insert into utility.usage_data (id, start_date, end_date, usage, usage_units, raw)
    values (gen_random_uuid(), '2025-01-01', '2025-01-31', 7, 'crates', '{}')`);
  const { rows } = await run('select usage from analytics.monthly_usage where company_id is null');
  expect(rows).toEqual([{ usage: '7' }]);
  expect(await differing()).toBe(0);
});

test('a company whose changes are young waits', async () => {
  await keepAll();
  await billedCompany();
  expect(await keepMonths(warehouse.db, { companiesMax: 10, quietSeconds: 3_600 })).toBe(0);
  expect(await keepAll()).toBe(1);
});
