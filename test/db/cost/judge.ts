import { type Ran, scannedTables } from '../../support/plans.ts';
import { growingTables } from './rows.ts';

/** A statement that costs too much in a large warehouse. */
export interface Complaint {
  readonly said: string;
  /** The statement, with whitespace folded. */
  readonly text: string;
}

/** The blocks that a statement touched in all its runs, and the tables that it scanned. */
interface Cost {
  blocks: number;
  readonly scanned: Set<string>;
}

function costs(ran: readonly Ran[]): Map<string, Cost> {
  const all = new Map<string, Cost>();
  for (const { text, plan, blocks } of ran) {
    const cost = all.get(text) ?? { blocks: 0, scanned: new Set() };
    all.set(text, cost);
    cost.blocks += blocks;
    for (const table of scannedTables(plan)) {
      const growing = growingTable(table);
      if (growing !== undefined) cost.scanned.add(growing);
    }
  }
  return all;
}

/** Returns the table of this name if it grows with use. Partitions count as the table of readings. */
const growingTable = (name: string): string | undefined =>
  growingTables.find((table) => table.endsWith(`.${name.replace(/_\d{4}_\d{2}$/, '')}`));

/** Returns how many blocks a statement may touch: in a large warehouse, index trees are higher. */
const allowed = (small: number, rows: number): number => Math.floor(small * 1.5) + 4 * rows + 24;

/** Compares work on `rows` rows in a large and a small warehouse; returns statements that cost too much. */
export function complaintsAbout(small: readonly Ran[], large: readonly Ran[], rows: number): Complaint[] {
  const before = costs(small);
  return [...costs(large)].flatMap(([text, { blocks, scanned }]) => {
    const few = before.get(text)?.blocks ?? 0;
    const said = [...scanned].map((table) => `reads all of ${table}`);
    if (blocks > allowed(few, rows)) said.push(`touches ${blocks} blocks, and ${few} in a small warehouse`);
    return said.map((one) => ({ said: one, text }));
  });
}
