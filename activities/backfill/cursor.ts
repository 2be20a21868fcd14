import { Context } from '@temporalio/activity';
import { notedCursor } from '../heartbeat.ts';
import type { IntervalCursor } from './intervals.ts';
import type { ListingCursor } from './listing.ts';

/** Where the read of a company goes on: within a listing, or at a meter. */
export type CompanyCursor = ListingCursor | IntervalCursor;

/**
 * Where an earlier attempt of the activity stopped, if that was in this company: an activity reads several.
 * Else where the activity before this one stopped.
 */
export const resumedCursor = (companyId: string | null, given: CompanyCursor | null): CompanyCursor | null =>
  cursorIn(companyId, Context.current().info.heartbeatDetails) ?? given;

/** How far this activity has read a company; null before its first page. */
export const reachedCursor = (companyId: string): CompanyCursor | null => cursorIn(companyId, notedCursor());

function cursorIn(companyId: string | null, noted: unknown): CompanyCursor | null {
  const cursor = noted as CompanyCursor | undefined;
  return cursor?.companyId === companyId ? cursor : null;
}
