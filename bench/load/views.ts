import type pg from 'pg';
import { planOf, type RunPlan, type RunTime, timeOf } from './plans.ts';

export type Answer = RunPlan & RunTime;

/** How often each view is queried after a query that warms up. The median counts. */
const asked = 3;

/** Lists the views of analytics that have a company in each row. */
async function viewsOfCompanies(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(`
    select quote_ident(c.relname) as name from pg_class c
      join pg_attribute a on a.attrelid = c.oid and a.attname = 'company_id'
    where c.relkind = 'v' and c.relnamespace = 'analytics'::regnamespace order by 1`);
  if (rows.length === 0) throw new Error('there are no views');
  return rows.map(({ name }) => name);
}

/** Queries each of these views for one company. */
export async function answersOf(client: pg.Client, companyId: string): Promise<Map<string, Answer>> {
  const answers = new Map<string, Answer>();
  for (const view of await viewsOfCompanies(client))
    answers.set(
      view,
      await answer(client, `select * from analytics.${view} where company_id = '${companyId}'`),
    );
  return answers;
}

/** Returns the plan of a run that warms the caches, and the median time of several runs after it. */
export async function answer(client: pg.Client, statement: string): Promise<Answer> {
  const plan = await planOf(client, statement);
  const times: RunTime[] = [];
  for (let time = 0; time < asked; time++) times.push(await timeOf(client, statement));
  const ordered = times.toSorted((a, b) => a.ms - b.ms);
  return { ...plan, ...(ordered[Math.floor(asked / 2)] as RunTime) };
}
