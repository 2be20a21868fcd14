import { createHash, randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import type pg from 'pg';
import { afterAll, beforeAll, expect, onTestFailed, test } from 'vitest';
import { keepMonths } from '../../db/watch/months.ts';
import { BilledCompany } from '../support/bills.ts';
import { cases } from '../support/cases.ts';
import { createWarehouse } from '../support/warehouse.ts';

let warehouse: Awaited<ReturnType<typeof createWarehouse>>;
/** The sessions of a writer and of the keeping of months. A new session would plan for a second. */
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
const keepAll = () => keepMonths(warehouse.db, { budgetSeconds: 60 });
const run = (statement: string) => warehouse.db.execute(sql.raw(statement));

const kinds = ['monthly_usage', 'monthly_cost'] as const;
const rowsOf = (suffix: string) =>
  kinds.map((kind) => `select '${kind}', m::text from metersync.${kind}${suffix} m`).join(' union all ');

/** Counts the kept months that differ from the months computed from the records. */
async function differing(): Promise<number> {
  // Planning takes longer than the query itself, so the statement has a name and the session keeps the plan.
  const { rows } = await warehouse.pool.query<{ rows: number }>({
    name: 'differing',
    text: `
      with shown as (${rowsOf('')}),
      worked_out as (${rowsOf('_now')}),
      differing as (
        (select * from shown except all select * from worked_out)
        union all
        (select * from worked_out except all select * from shown)
      )
      select count(*)::int as rows from differing`,
  });
  return rows[0]?.rows ?? 0;
}

const place = fc.nat(2);
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('bill' as const),
      owner: place,
      bill: place,
      /** The owner of the meter, or undefined if the usage has no meter. */
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
    arbitrary: fc.record({ do: fc.constant('keep' as const), budgetSeconds: fc.constantFrom(0, 60) }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** A history of three companies. Their usage and bills may name meters and bills of the other companies. */
class History {
  readonly #name = randomUUID();
  readonly #idOf = (...parts: readonly (string | number)[]) =>
    createHash('md5')
      .update([this.#name, ...parts].join(' '))
      .digest('hex')
      .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  readonly company = (at: number) => this.#idOf('company', at);
  readonly #bill = (owner: number, bill: number) => this.#idOf('bill', owner, bill);

  /** Returns the statements of a step. They may change nothing. */
  statements(one: Step): readonly string[] {
    switch (one.do) {
      case 'bill':
        return this.#write(one);
      case 'meter': {
        const owner = one.owner === null ? 'null' : `'${this.company(one.owner)}'`;
        return [
          `insert into utility.meters (id, company_id, raw)
            values ('${this.#idOf('meter', one.meter)}', ${owner}, '{"datasourceType": "WATER"}')
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
    const day = (at: number) => new Date(Date.UTC(2025, 0, 1 + at)).toISOString().slice(0, 10);
    const row = {
      meter: meter === undefined ? null : this.#idOf('meter', meter),
      startDate: day(start),
      endDate: day(start + days),
      usage: String(usage),
      usageUnits: 'teu',
      datasourceType: 'WATER',
    };
    const document = {
      created: day(start),
      accountNumber: 'A-1',
      currentCharges: String(usage),
      chargesUnits: 'USD',
      revisedDocumentId: successor === undefined ? null : this.#bill(...successor),
    };
    return [
      `insert into utility.documents (id, company_id, raw)
        values ('${id}', '${company}', '${JSON.stringify(document)}')
        on conflict (id) do update set raw = excluded.raw`,
      `insert into utility.usage_data (id, company_id, document_id, raw)
        values ('${this.#idOf('usage', id)}', '${company}', '${id}', '${JSON.stringify(row)}')
        on conflict (id) do update set raw = excluded.raw`,
    ];
  }
}

test('companies whose records name one another are computed once, whichever of them changed', async () => {
  await keepAll();
  const companies = [
    new BilledCompany(warehouse),
    new BilledCompany(warehouse),
    new BilledCompany(warehouse),
  ];
  const meter = `shared/${randomUUID()}`;
  await companies[0]?.add({ [meter]: {} });
  for (const [at, company] of companies.entries()) {
    if (at > 0) await company.add({});
    await company.bill([
      {
        billed: at,
        cost: '1.00',
        usage: [{ meterId: meter, start: '2026-01-01', end: '2026-01-31', usage: '1' }],
      },
    ]);
  }
  await keepAll();
  const ids = companies.map(({ id }) => `('${id}'::uuid, '2020-01-01'::timestamptz)`);
  // The change of the meter's owner is the oldest. Its group contains all three companies.
  await run(`insert into metersync.company_changes (company_id, changed_at) values ${ids.join(', ')}`);
  await run(
    `update metersync.company_changes set changed_at = '2019-01-01' where company_id = '${companies[0]?.id}'`,
  );
  expect(await keepAll()).toBe(3);
  expect(await differing()).toBe(0);
});

test(`computed months equal a computation from nothing, whatever was written before (seed ${seed})`, {
  timeout: 120_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 20 }), async (steps) => {
      await run('truncate utility.usage_data, utility.documents, utility.meters');
      const history = new History();
      for (const one of [...steps, { do: 'keep', budgetSeconds: 60 } as const]) {
        for (const statement of history.statements(one)) await run(statement);
        // Without a time budget each call computes only some of the companies.
        if (one.do === 'keep') while ((await keepMonths(warehouse.db, one)) > 0);
        if (one.do === 'keep') expect(await differing()).toBe(0);
      }
    }),
    { seed, numRuns: cases(8, 200) },
  );
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

/** Returns all orders in which the steps of two sides can happen. */
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
  'a first bill': (id: string) => `insert into utility.usage_data (id, company_id, raw)
    values (gen_random_uuid(), '${id}',
      '{"startDate": "2025-03-01", "endDate": "2025-04-02", "usage": "5", "usageUnits": "kWh"}')`,
  'a change of a unit': () => `update ops.unit_factors set factor = factor * 1.01 where units = 'kWh'`,
};

test.each(
  Object.entries(changes).flatMap(([name, change]) =>
    orders(['writes', 'commits'], ['keeps', 'ends']).map(
      (order) => [name, order.join(', '), change, order] as const,
    ),
  ),
)('%s is not lost if months are computed meanwhile: %s', async (name, _, change, order) => {
  const { company } =
    name === 'a first bill' ? { company: new BilledCompany(warehouse) } : await billedCompany();
  // If there were no meter, missing records would count as present.
  await billedCompany();
  await keepAll();
  onTestFailed(async () => {
    for (const session of [writer, keeper]) await session.query('rollback');
  });
  const does: Readonly<Record<string, () => Promise<unknown>>> = {
    writes: () => writer.query(`begin; ${change(company.id)}`),
    commits: () => writer.query('commit'),
    keeps: () => keeper.query(`begin; select metersync.keep_months('1 minute')`),
    ends: () => keeper.query('commit'),
  };
  for (const step of order) await does[step]?.();
  await keepAll();
  expect(await differing()).toBe(0);
});

test('a write that changes no month does not make months be computed again', async () => {
  const { company } = await billedCompany();
  await keepAll();
  await run(
    `update utility.documents set usage_read_at = now(), synced_at = now() where company_id = '${company.id}'`,
  );
  expect(await keepAll()).toBe(0);
});

test('months without bills between two bills are shown up to the current month', async () => {
  const { company, meterId } = await billedCompany();
  await company.bill([
    { billed: 2, usage: [{ meterId, start: '2033-01-01', end: '2033-01-31', usage: '1' }] },
  ]);
  const months = await company.rows<{ month: string; coverage: string }>('monthly_usage', 'month');
  const { rows } = await run(`select (date_trunc('month', current_date))::date::text as today`);
  expect(months.slice(-2)).toMatchObject([
    { month: rows[0]?.today, coverage: '0.0000' },
    { month: '2033-01-01', coverage: '1.0000' },
  ]);
});
