import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fillAnalytics, joinsOfViews, statementOf } from '../../bench/analytics-world.ts';
import { keepMonths } from '../../db/watch/months.ts';
import { createWarehouse } from '../support/warehouse.ts';

const companies = 6;
const bills = 1_080;
let warehouse: Awaited<ReturnType<typeof createWarehouse>>;
let client: pg.Client;
beforeAll(async () => {
  warehouse = await createWarehouse();
  client = new pg.Client({ connectionString: warehouse.url });
  await client.connect();
  const shape = { documents: bills / companies, months: 36, intervalMeters: 1, readings: 960 };
  await fillAnalytics(client, shape, { from: 1, to: companies });
  await keepMonths(warehouse.db, { budgetSeconds: 60 });
  await client.query('analyze; set jit = off; set max_parallel_workers_per_gather = 0');
}, 120_000);
afterAll(async () => {
  await client?.end();
  await warehouse.drop();
});

interface PlanNode {
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Relation Name'?: string;
  readonly Plans?: readonly PlanNode[];
}

async function planOf(statement: string): Promise<PlanNode> {
  const { rows } = await client.query(`explain (analyze, timing off, format json) ${statement}`);
  return rows[0]['QUERY PLAN'][0].Plan;
}

const nodesOf = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];

/** Returns how many rows of records a plan reads; views that are computed repeatedly read them again. */
const rowsRead = (plan: PlanNode): number =>
  nodesOf(plan)
    .filter((node) => node['Relation Name'] === 'documents' || node['Relation Name'] === 'usage_data')
    .reduce((sum, node) => sum + Math.max(1, node['Actual Rows']) * node['Actual Loops'], 0);

test.each([
  '',
  `where c.commodity = 'ELECTRICITY'`,
  `where u.units = 'kWh'`,
  `where c.commodity = 'ELECTRICITY' and u.commodity = c.commodity and b.currency = 'USD' and b.boundary_rule = 'end_inclusive'`,
])('a query for the cost per kWh that joins three views computes each view once: %s', async (where) => {
  const plan = await planOf(`
    select b.invoice_id, c.cost / nullif(sum(u.usage), 0) as per_kwh from analytics.bill_costs c
      join analytics.bills b using (bill_id)
      join analytics.usage u on u.bill_id = c.bill_id and u.meter_id = c.meter_id
    ${where} group by b.bill_id, b.invoice_id, c.cost`);
  expect(rowsRead(plan)).toBeGreaterThan(bills);
  expect(rowsRead(plan)).toBeLessThan(20 * bills);
});

test('a join of two views with a common key does not compute one view for each row of the other', async () => {
  const joins = await joinsOfViews(client);
  expect(joins.length).toBeGreaterThan(40);
  const repeated: string[] = [];
  // Only joins of two views are tested here. The bench measures joins of three views, with 200,000 bills.
  for (const join of joins.filter(({ views }) => views.length === 2)) {
    const rows = rowsRead(await planOf(statementOf(join)));
    if (rows > 20 * bills) repeated.push(`${join.views.join(', ')}: ${rows}`);
  }
  expect(repeated).toEqual([]);
});
