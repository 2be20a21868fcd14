import { randomUUID } from 'node:crypto';
import { type SQL, sql } from 'drizzle-orm';
import fc from 'fast-check';
import type { Warehouse } from '../../db/connection/connect.ts';
import { BilledCompany } from './bills.ts';

const documents = 5;
const anyDocument = fc.nat(documents - 1);
/** A step in the history of one of five documents. A document does not exist until a step writes it. */
export const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('write' as const),
      document: anyDocument,
      cost: fc.integer({ min: -500, max: 5_000 }),
      start: fc.integer({ min: 1, max: 12 }),
      days: fc.integer({ min: 0, max: 16 }),
      link: fc.option(anyDocument),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom('delete' as const, 'undelete' as const),
      document: anyDocument,
    }),
  },
);
export type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

interface Document {
  readonly created: number;
  readonly cost: number;
  readonly link: number | null;
  readonly deleted: boolean;
}

/** Finds the documents that count by the rules of docs/analytics.md, one document at a time. */
export function effective(known: ReadonlyMap<number, Document>): Map<number, number> {
  const alive = (at: number) => known.get(at)?.deleted !== true;
  const counts = (at: number): boolean => {
    const path = [at];
    let next = known.get(at)?.link ?? null;
    while (next !== null && !path.includes(next)) {
      path.push(next);
      next = known.get(next)?.link ?? null;
    }
    if (next !== at) return !path.slice(1).some(alive);
    const ring = path
      .filter(alive)
      .sort((a, b) => (known.get(b)?.created ?? 0) - (known.get(a)?.created ?? 0));
    return ring[0] === at;
  };
  const all = [...known].filter(([at, { deleted }]) => !deleted && counts(at));
  return new Map(all.map(([at, { cost }]) => [at, cost]));
}

/** The time at which documents were found gone. It is earlier than the times of all reads. */
const beforeAllReads = '2026-01-01T00:00:00Z';

const day = (at: number) => `2026-03-${String(at).padStart(2, '0')}`;

/** The history of one company's documents, kept in the warehouse and, for comparison, in a map. */
export class BillHistory {
  readonly company: BilledCompany;
  readonly ids = Array.from({ length: documents }, () => randomUUID());
  readonly known = new Map<number, Document>();
  readonly #warehouse: Warehouse;

  constructor(warehouse: Warehouse) {
    this.#warehouse = warehouse;
    this.company = new BilledCompany(warehouse);
  }

  async take(one: Step): Promise<void> {
    const before = this.known.get(one.document);
    const id = this.ids[one.document] ?? '';
    if (one.do === 'write') {
      this.known.set(one.document, {
        created: one.document,
        cost: one.cost,
        link: one.link,
        // A read that began after a document was found gone brings it back.
        deleted: false,
      });
      const revisedDocumentId = one.link === null ? null : (this.ids[one.link] ?? null);
      await this.company.bill([
        {
          id,
          billed: one.document,
          cost: `${one.cost}`,
          currency: one.cost % 3 === 0 ? 'EUR' : 'USD',
          usage: [],
          more: {
            accountNumber: 'A-1',
            startDate: day(one.start),
            endDate: day(one.start + one.days),
            revisedDocumentId,
          },
        },
      ]);
    } else if (before !== undefined) {
      const deleted = one.do === 'delete';
      this.known.set(one.document, { ...before, deleted });
      await this.#warehouse.db.execute(sql`update utility.documents
        set deleted_at = ${deleted ? beforeAllReads : null} where id = ${id}::uuid`);
    }
  }

  /** Reads all columns of the bills that count. */
  async bills(from: SQL): Promise<Record<string, unknown>[]> {
    const { rows } = await this.#warehouse.db.execute(
      sql`select * from ${from} where company_id = ${this.company.id}::uuid order by bill_id`,
    );
    return rows;
  }

  /** Reads the clock of the warehouse. */
  async now(): Promise<string> {
    const { rows } = await this.#warehouse.db.execute<{ now: string }>(
      sql`select clock_timestamp()::text as now`,
    );
    return rows[0]?.now ?? '';
  }
}
