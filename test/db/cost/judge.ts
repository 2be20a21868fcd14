import { type Ran, scannedWhole } from '../../support/plans.ts';
import { growingTables } from './rows.ts';

/** What is wrong with how a statement ran in a large warehouse. */
export interface Complaint {
  readonly said: string;
  /** The statement, with one space where it has several. */
  readonly text: string;
}

/** What a statement touched over all its runs, and the tables that it read from end to end. */
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
    for (const table of scannedWhole(plan)) if (grows(table)) cost.scanned.add(table);
  }
  return all;
}

/** A month of readings is one of the tables of all readings. */
const grows = (table: string): boolean => growingTables.includes(table.replace(/_\d{4}_\d{2}$/, ''));

/** Where there is more, the tree of an index is a level or two higher: each row is looked up in some of them. */
const allowed = (small: number, rows: number): number => Math.floor(small * 1.5) + 4 * rows + 24;

/** What is wrong with how work on so many rows was done in a large warehouse, measured by how it was in a small one. */
export function complaintsAbout(small: readonly Ran[], large: readonly Ran[], rows: number): Complaint[] {
  const before = costs(small);
  return [...costs(large)].flatMap(([text, { blocks, scanned }]) => {
    const few = before.get(text)?.blocks ?? 0;
    const said = [...scanned].map((table) => `reads all of ${table}`);
    if (blocks > allowed(few, rows)) said.push(`touches ${blocks} blocks, and ${few} in a small warehouse`);
    return said.map((one) => ({ said: one, text }));
  });
}
