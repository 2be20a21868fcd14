import { and, count, eq, type SQL, sql } from 'drizzle-orm';
import type { RunState } from '../../contract/names.ts';
import { arrayLiteral, unnested } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { prepared } from '../connection/prepared.ts';
import { isHeld, isTombstonedBy } from '../deletes/absent.ts';
import { proving } from '../records/fence.ts';
import type { ListedResource } from '../resources.ts';
import { deletes, noCompany, pages, runs } from '../schema/reads.ts';
import { missedBy } from './missed.ts';
import { ended, isRun, type RunCounts, type RunKey } from './runs.ts';

/** What a page of a listing contained. */
interface ManifestPage {
  readonly asked: number;
  readonly currentPage: number;
  readonly total: number | null;
  readonly hasNext: boolean;
  readonly ids: readonly (string | null)[];
}

/** A pass over a listing of a company; without a company, over the list of companies itself. */
interface PassKey {
  readonly runId: string;
  readonly companyId: string | null;
  readonly resource: ListedResource;
  readonly pass: number;
}

const isOfListing = ({ runId, companyId, resource }: Omit<PassKey, 'pass'>): SQL | undefined =>
  and(
    eq(pages.runId, runId),
    eq(pages.companyId, companyId ?? noCompany),
    eq(pages.resource, resource),
  );

/** Notes pages after their rows were written. Returns the warehouse's clock, which dates the next read. */
export async function notePages(
  db: Executor,
  key: PassKey,
  read: readonly (ManifestPage & { readonly readAt: string })[],
): Promise<string> {
  const incoming = unnested('page', read, [
    ['asked', 'int', ({ asked }) => asked],
    ['current_page', 'int', ({ currentPage }) => currentPage],
    ['total', 'bigint', ({ total }) => total],
    ['has_next', 'boolean', ({ hasNext }) => hasNext],
    ['ids', 'text', ({ ids }) => arrayLiteral(ids)],
    ['read_at', 'timestamptz', ({ readAt }) => readAt],
  ]);
  const { rows } = await prepared(db, 'notePages').execute<{ now: string }>(sql`
    with noted as (
      insert into ${pages} (
        run_id, company_id, resource, pass, asked, current_page, total, has_next, ids, read_at
      )
      select
        ${key.runId}::uuid, ${key.companyId ?? noCompany}::uuid, ${key.resource}, ${key.pass}::int,
        asked, current_page, total, has_next, ids::text[], read_at
      from ${incoming}
      on conflict (run_id, company_id, resource, pass, asked) do update set
        current_page = excluded.current_page,
        total = excluded.total,
        has_next = excluded.has_next,
        ids = excluded.ids
    )
    select clock_timestamp()::text as now`);
  return rows[0]?.now ?? '';
}

/** Reads the pages that a pass has read so far, in order, and when it began. */
export async function readManifest(
  db: Executor,
  key: PassKey,
): Promise<{ pages: ManifestPage[]; beganAt: string | null }> {
  const { asked, currentPage, total, hasNext, ids, readAt } = pages;
  const read = await db
    .select({ asked, currentPage, total, hasNext, ids, readAt })
    .from(pages)
    .where(and(isOfListing(key), eq(pages.pass, key.pass)))
    .orderBy(asked);
  return { pages: read.map(({ readAt, ...page }) => page), beganAt: read[0]?.readAt ?? null };
}

/** How a listing of a run ended. */
interface ListingEnd {
  readonly state: RunState;
  readonly error?: string | undefined;
  readonly counts: Omit<RunCounts, 'tombstoned' | 'missed' | 'requests'>;
  /** When the walk began that proved the listing complete; absent if none did. */
  readonly provedBegan?: string | undefined;
  /** Whether the listing is complete. Then what an earlier run quarantined is out of date. */
  readonly lacksNothing: boolean;
  /** Whether an earlier run read the listing, and this run changed or tombstoned a row. */
  readonly mayHaveMissed: boolean;
}

/**
 * Ends the part of a run that read a listing, moves the fence of the listing if a walk was proved,
 * and deletes the manifest. Postgres counts tombstoned and missed rows, requests and moved pages. A
 * page moved if the service answered with another page, or with another total than on the first
 * page of the pass.
 */
export async function finishListing(
  db: Executor,
  key: RunKey & { readonly resource: ListedResource },
  { state, error, counts, provedBegan, lacksNothing, mayHaveMissed }: ListingEnd,
): Promise<void> {
  const { pass, asked, currentPage, total } = pages;
  const page = db
    .$with('page')
    .as(db.delete(pages).where(isOfListing(key)).returning({ pass, asked, currentPage, total }));
  const firstTotal = sql`first_value(${page.total}) over (partition by ${page.pass} order by ${page.asked})`;
  const hasMoved = sql`${page.currentPage} <> ${page.asked} or ${page.total} is distinct from ${firstTotal}`;
  const judged = db.$with('judged').as(db.select({ moved: hasMoved.as('moved') }).from(page));
  const missed = mayHaveMissed ? missedBy(db, key.runId, key) : undefined;
  const began = provedBegan ?? '-infinity';
  const cleared = db
    .$with('cleared')
    .as(db.delete(deletes).where(isHeld(key, began)).returning({ recordId: deletes.recordId }));
  const proved = db.$with('proved').as(proving(db, { ...key, began }));
  await db
    .with(
      page,
      judged,
      ...(lacksNothing ? [cleared] : []),
      ...(provedBegan === undefined ? [] : [proved]),
    )
    .update(runs)
    .set({
      ...ended(key, state, error, counts),
      rowsTombstoned: db.$count(deletes, isTombstonedBy(key.runId, key)),
      rowsMissed: missed === undefined ? 0 : sql`${missed}`,
      drift: sql`${db.select({ pages: count() }).from(judged).where(sql`${judged.moved}`)}`,
      requests: sql`${db.select({ pages: count() }).from(judged)}`,
    })
    .where(isRun(key));
}
