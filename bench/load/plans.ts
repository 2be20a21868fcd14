import { existsSync, readFileSync } from 'node:fs';
import { finished } from 'node:stream/promises';
import type pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { msOf } from '../measure.ts';

/** How Postgres runs a statement. */
export interface RunPlan {
  /** The planner's cost, in its own unit. */
  readonly cost: number;
  readonly rows: number;
  /** Every table and index that was read, and how. */
  readonly scans: readonly { readonly node: string; readonly relation: string }[];
}

/** How long a caller waits for all rows of a statement, which Postgres sends as text. */
export interface RunTime {
  readonly ms: number;
  /** Postgres's processor time, if it can be measured: how long the statement takes on an idle machine. */
  readonly cpuMs: number | undefined;
}

interface Node {
  readonly 'Node Type': string;
  readonly 'Total Cost': number;
  readonly 'Actual Rows': number;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly Plans?: readonly Node[];
}

/** Runs a statement to get its plan. Counting the rows makes it a quarter slower. */
export async function planOf(client: pg.Client, statement: string): Promise<RunPlan> {
  const { rows } = await client.query(`explain (analyze, timing off, format json) ${statement}`);
  const { Plan: plan } = rows[0]['QUERY PLAN'][0] as { Plan: Node };
  return { cost: plan['Total Cost'], rows: plan['Actual Rows'], scans: scansOf(plan) };
}

/** Runs a statement as a caller does, and discards each row. */
export async function timeOf(client: pg.Client, statement: string): Promise<RunTime> {
  const before = cpuMs(client);
  const ms = await msOf(() => finished(client.query(copyTo(`copy (${statement}) to stdout`)).resume()));
  const after = cpuMs(client);
  return { ms, cpuMs: before === undefined || after === undefined ? undefined : after - before };
}

/** Processor time of the session, in hundredths of a second; undefined if Postgres is not on this Linux. */
function cpuMs(client: pg.Client): number | undefined {
  const { processID } = client as pg.Client & { readonly processID: number | null };
  const file = `/proc/${processID}/stat`;
  if (processID === null || !existsSync(file)) return undefined;
  // The program's name, in brackets, may contain blanks.
  const fields = readFileSync(file, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

function scansOf(node: Node): RunPlan['scans'] {
  const relation = node['Index Name'] ?? node['Relation Name'];
  const own = relation === undefined ? [] : [{ node: node['Node Type'], relation }];
  return [...own, ...(node.Plans ?? []).flatMap(scansOf)];
}
