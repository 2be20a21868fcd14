import { existsSync, readFileSync } from 'node:fs';
import type pg from 'pg';

/** What Postgres says of a statement that it ran. */
export interface RunPlan {
  /** Planning, execution and turning the rows into text. */
  readonly ms: number;
  /** The same as time of a processor, where that can be known: what it takes on a machine that does nothing else. */
  readonly cpuMs: number | undefined;
  /** The planner's own unit. */
  readonly cost: number;
  readonly rows: number;
  /** Every table and index that was looked into, with the way it was. */
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

/** Runs a statement as its caller would; the rows become text on the server, and stay there. */
export async function runPlan(client: pg.Client, statement: string): Promise<RunPlan> {
  const before = cpuMs(client);
  const { rows } = await client.query(
    `explain (analyze, timing off, serialize text, format json) ${statement}`,
  );
  const after = cpuMs(client);
  const told = rows[0]['QUERY PLAN'][0] as {
    Plan: Node;
    'Planning Time': number;
    'Execution Time': number;
  };
  return {
    ms: told['Planning Time'] + told['Execution Time'],
    cpuMs: before === undefined || after === undefined ? undefined : after - before,
    cost: told.Plan['Total Cost'],
    rows: told.Plan['Actual Rows'],
    scans: scansOf(told.Plan),
  };
}

/** Linux counts it in hundredths of a second; a server elsewhere, or on another system, tells nothing. */
function cpuMs(client: pg.Client): number | undefined {
  return cpuMsOf((client as pg.Client & { readonly processID: number | null }).processID);
}

/** Time of a processor that a process took so far. */
export function cpuMsOf(processID: number | null): number | undefined {
  const file = `/proc/${processID}/stat`;
  if (processID === null || !existsSync(file)) return undefined;
  // The name of the program, in brackets, may hold blanks.
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
