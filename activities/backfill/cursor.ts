import { Context } from '@temporalio/activity';
import type { PageWritten } from '../../db/records/write-page.ts';
import type { ListedResource } from '../../db/resources.ts';
import { notedCursor } from '../heartbeat.ts';

/** The last page of a listing whose rows are in Postgres, and the counts so far. */
export interface ListingCursor {
  readonly resource: ListedResource;
  readonly companyId: string | null;
  readonly pass: number;
  readonly page: number;
  readonly written: PageWritten;
}

/** Where the read of a company's meters continues. Its fixed size fits into the history of a workflow. */
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

export interface CompanyReading {
  readonly runId: string;
  readonly companyId: string;
  /** Null at the first resource that the run has not finished. */
  readonly cursor: CompanyCursor | null;
}

/** What one activity did of a company. The workflow calls the activity with the cursor until it is done. */
export interface CompanyStep {
  readonly done: boolean;
  readonly cursor: CompanyCursor | null;
}

/** Where the read of a company continues: where an earlier attempt stopped in it, or else at `given`. */
export const resumedCursor = (companyId: string | null, given: CompanyCursor | null): CompanyCursor | null =>
  cursorIn(companyId, Context.current().info.heartbeatDetails) ?? given;

/** How far this activity has read a company, or null if it has not written a page of it. */
export const reachedCursor = (companyId: string): CompanyCursor | null => cursorIn(companyId, notedCursor());

function cursorIn(companyId: string | null, noted: unknown): CompanyCursor | null {
  const cursor = noted as CompanyCursor | undefined;
  return cursor?.companyId === companyId ? cursor : null;
}
