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
  /**
   * Processor time of Postgres, if it can be measured. On an idle machine, the statement would take about
   * this long.
   */
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

/**
 * Runs a statement to get its plan. This takes a quarter longer than a normal run, because each row is
 * counted.
 */
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

/**
 * Processor time of the session so far, which Linux counts in hundredths of a second. Undefined if Postgres
 * runs elsewhere or on another system.
 */
function cpuMs(client: pg.Client): number | undefined {
  return cpuMsOf((client as pg.Client & { readonly processID: number | null }).processID);
}

/** Returns the processor time that a process has used. */
export function cpuMsOf(processID: number | null): number | undefined {
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
