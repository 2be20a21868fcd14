import { type SQL, sql } from 'drizzle-orm';
import type pg from 'pg';
import { connectWarehouse, type Warehouse } from '../../db/connection/connect.ts';

/** A node of a plan, as `explain (analyze, buffers, format json)` prints it: the fields that tests read. */
export interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Index Cond'?: string;
  readonly 'CTE Name'?: string;
  readonly 'Subplan Name'?: string;
  readonly 'Actual Loops': number;
  readonly 'Actual Rows': number;
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly Plans?: readonly PlanNode[];
}

/** A statement that Postgres ran, also within a function, with its plan and the blocks it touched. */
export interface Ran {
  /** Its text with white space folded. Parameters are $1 and so on. */
  readonly text: string;
  readonly plan: PlanNode;
  /** Blocks of tables and indexes that it touched, in memory or not. */
  readonly blocks: number;
}

/** Makes Postgres send each plan as a notice after its statement. Only a superuser may set this. */
const options = {
  session_preload_libraries: 'auto_explain',
  'auto_explain.log_min_duration': '0',
  'auto_explain.log_analyze': 'on',
  'auto_explain.log_buffers': 'on',
  'auto_explain.log_nested_statements': 'on',
  'auto_explain.log_format': 'json',
  'auto_explain.log_timing': 'off',
  'auto_explain.log_parameter_max_length': '0',
  'auto_explain.log_level': 'notice',
  client_min_messages: 'notice',
};

/** A warehouse whose connections report the plan of each statement. */
export interface ExplainedWarehouse extends Warehouse {
  /** Runs work and returns the statements that Postgres ran for it, in the order in which they ended. */
  plansOf(work: () => Promise<unknown>): Promise<Ran[]>;
}

/** Opens a warehouse as superuser and collects its plans, with `settings` for these sessions. */
export function connectExplained(
  url: string,
  settings: Readonly<Record<string, string>> = {},
): ExplainedWarehouse {
  const address = new URL(url);
  const given = Object.entries({ ...options, ...settings }).map(([name, value]) => `-c ${name}=${value}`);
  address.searchParams.set('options', given.join(' '));
  const warehouse = connectWarehouse({ url: address.href, timeZone: 'UTC', max: 2, onError: () => {} });
  let ran: Ran[] = [];
  warehouse.pool.on('connect', (client: pg.PoolClient) =>
    client.on('notice', ({ message = '' }) => {
      const statement = readPlan(message);
      if (statement !== undefined) ran.push(statement);
    }),
  );
  return {
    ...warehouse,
    plansOf: async (work) => {
      ran = [];
      await work();
      return ran;
    },
  };
}

function readPlan(message: string): Ran | undefined {
  const at = message.indexOf('plan:\n');
  if (!message.startsWith('duration: ') || at < 0) return undefined;
  const notice = JSON.parse(message.slice(at + 'plan:\n'.length)) as { 'Query Text': string; Plan: PlanNode };
  const { Plan: plan } = notice;
  return { text: notice['Query Text'].replace(/\s+/g, ' ').trim(), plan, blocks: blocksOf(plan) };
}

/**
 * Adds up the blocks that a statement touched. Postgres runs a step that no other step reads after the rest,
 * and does not count its blocks in the root.
 */
function blocksOf(plan: PlanNode): number {
  const nodes = nodesOf(plan);
  const read = new Set(nodes.map((node) => node['CTE Name']));
  const unread = nodes.filter(({ 'Subplan Name': name }) => {
    const step = /^CTE (.*)$/.exec(name ?? '')?.[1];
    return step !== undefined && !read.has(step);
  });
  return [plan, ...unread].reduce(
    (sum, node) => sum + node['Shared Hit Blocks'] + node['Shared Read Blocks'],
    0,
  );
}

/**
 * Runs a query twice and returns the smaller number of blocks that it touched: reading the catalogue again,
 * after changes in any database, touches twice as many.
 */
export async function blocksTouched({ db }: Pick<Warehouse, 'db'>, query: SQL): Promise<number> {
  const run = async (): Promise<number> => {
    const { rows } = await db.execute<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
      sql`explain (analyze, buffers, format json) ${query}`,
    );
    const plan = rows[0]?.['QUERY PLAN'][0].Plan;
    return plan === undefined ? 0 : blocksOf(plan);
  };
  return Math.min(await run(), await run());
}

/** Lists the executed nodes of a plan, the root first. */
export function nodesOf(plan: PlanNode): PlanNode[] {
  const below = (plan.Plans ?? []).flatMap(nodesOf);
  return plan['Actual Loops'] > 0 ? [plan, ...below] : below;
}

/** Lists the tables that a plan scanned completely. The schema is missing: only a verbose plan has it. */
export function scannedTables(plan: PlanNode): string[] {
  return nodesOf(plan)
    .filter((node) => node['Node Type'] === 'Seq Scan')
    .map((node) => node['Relation Name'] ?? '');
}
