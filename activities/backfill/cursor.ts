import type { PageWritten } from '../../db/records/write-page.ts';
import type { ListedResource } from '../../db/resources.ts';
import { resumedCursor } from '../activity-context.ts';

/** The last page of a listing whose rows are in Postgres, and the counts so far. */
export interface ListingCursor {
  readonly resource: ListedResource;
  readonly companyId: string | null;
  readonly pass: number;
  readonly page: number;
  readonly written: PageWritten;
}

/** Where the read of a company's meters continues. */
export interface IntervalCursor {
  readonly resource: 'intervals';
  readonly companyId: string;
  readonly after: string | null;
  readonly pages: number;
  readonly readings: number;
  readonly written: PageWritten;
  /** Sum of the meters' totals; null where the service gives none. */
  readonly reportedTotal: number | null;
  /** Readings that the service no longer lists: removed ones, and those held back. */
  readonly removed: number;
  readonly heldBack: number;
  /** Meters that could not be read. */
  readonly failed: number;
  /** The first of these meters. */
  readonly failedMeters: readonly string[];
  readonly error: string | null;
  /** Meters whose listing contradicts itself or the warehouse. */
  readonly suspect: number;
  /** The reason for the first of them. */
  readonly doubt: string | null;
}

/** Where the read of a company continues: within a listing, or at a meter. */
export type CompanyCursor = ListingCursor | IntervalCursor;

/** A company that a run reads. */
export interface CompanyKey {
  readonly runId: string;
  readonly companyId: string;
}

/** Where an earlier attempt of this activity stopped in a company, or in the list of companies. */
export function cursorIn(companyId: string | null): CompanyCursor | null {
  const cursor = resumedCursor() as CompanyCursor | undefined;
  return cursor?.companyId === companyId ? cursor : null;
}
