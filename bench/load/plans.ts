import { existsSync, readFileSync } from 'node:fs';
import type pg from 'pg';

/** What Postgres reports of a statement that it ran. */
export interface RunPlan {
  /** Planning, execution and conversion of the rows to text. */
  readonly ms: number;
  /** The same as processor time, if it can be measured: the time on an idle machine. */
  readonly cpuMs: number | undefined;
  /** The planner's cost, in its own unit. */
  readonly cost: number;
  readonly rows: number;
  /** Every table and index that was read, and how. */
  readonly scans: readonly { readonly node: string; readonly relation: string }[];
}

interface Node {
  readonly 'Node Type': string;
  readonly 'Total Cost': number;
  readonly 'Actual Rows': number;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly Plans?: readonly Node[];
}

/** Runs a statement as its caller would. The rows become text on the server, and stay there. */
export async function runPlan(client: pg.Client, statement: string): Promise<RunPlan> {
  const before = cpuMs(client);
  const { rows } = await client.query(
    `explain (analyze, timing off, serialize text, format json) ${statement}`,
  );
  const after = cpuMs(client);
  const explained = rows[0]['QUERY PLAN'][0] as {
    Plan: Node;
    'Planning Time': number;
    'Execution Time': number;
  };
  return {
    ms: explained['Planning Time'] + explained['Execution Time'],
    cpuMs: before === undefined || after === undefined ? undefined : after - before,
    cost: explained.Plan['Total Cost'],
    rows: explained.Plan['Actual Rows'],
    scans: scansOf(explained.Plan),
  };
}

/** Linux counts it in hundredths of a second. Undefined for a server elsewhere, or on another system. */
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
