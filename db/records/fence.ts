import { and, eq, type SQL, sql } from 'drizzle-orm';
import { excluded } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import type { RecordResource } from '../resources.ts';
import { listings, noCompany } from '../schema/reads.ts';

/**
 * A record that did not change since its row was written is not written again, so its row does not
 * say when it was last seen. The fence of its listing stands for that: it is when the newest walk
 * over the listing began that was proved complete, and that tombstoned what it lacks. Whatever an
 * earlier walk shows or lacks is dropped, because the proved walk has seen something later. A
 * transaction that writes what a walk found locks the fence until it ends.
 */

/** A walk over the listing of a company, or over the list of companies. */
export interface Walk {
  readonly companyId: string | null;
  /** What it lists. The list of companies also lists their sites. */
  readonly resource: RecordResource;
  /** The warehouse's clock before its first request. */
  readonly began: string;
}

type Listing = Omit<Walk, 'began'>;

const listingOf = ({ companyId, resource }: Listing) =>
  resource === 'sites' || resource === 'companies'
    ? { companyId: noCompany, resource: 'companies' }
    : { companyId: companyId ?? noCompany, resource };

const isOf = (listing: Listing): SQL | undefined => {
  const { companyId, resource } = listingOf(listing);
  return and(eq(listings.companyId, companyId), eq(listings.resource, resource));
};

const clock = sql`clock_timestamp()`;

/** The step `fence` of a statement that writes a page. It locks the fence of the page's listing. */
export const lockedFence = (walk: Walk): SQL => {
  const { companyId, resource } = listingOf(walk);
  return sql`fence as materialized (
    select proved_began
    from ${listings}
    where company_id = ${companyId}::uuid
      and resource = ${resource}
    for share
  )`;
};

/** What a walk found. */
type Found = 'page' | 'absences';

/**
 * Whether a later walk is proved. Once its own walk is proved, a page comes late, too: an attempt
 * that froze wrote it, and another attempt has read it since. A fence in the future does not count,
 * because the warehouse's clock was wrong when it was set.
 */
const isPassed = ({ began }: Walk, what: Found): SQL => sql`
        proved_began ${sql.raw(what === 'page' ? '>=' : '>')} ${began}::timestamptz
        and proved_began <= ${clock}`;

/** Whether a page, or the absences, of a walk are not behind the step `fence`. */
export const isAhead = (walk: Walk, what: Found): SQL => sql`not exists (
      select from fence
      where${isPassed(walk, what)}
    )`;

/** Locks the fence of a listing. Returns whether a page, or the absences, of a walk are behind it. */
export async function isBehind(tx: Executor, walk: Walk, what: Found): Promise<boolean> {
  const [fence] = await tx
    .select({ isPassed: sql<boolean>`${isPassed(walk, what)}` })
    .from(listings)
    .where(isOf(walk))
    .for('share');
  return fence?.isPassed ?? false;
}

/** Builds the step that moves the fence of a listing to the beginning of a walk that was proved. */
export function proving(db: Executor, walk: Walk) {
  const { companyId, resource, provedBegan } = listings;
  return db
    .insert(listings)
    .values({ ...listingOf(walk), provedBegan: walk.began })
    .onConflictDoUpdate({
      target: [companyId, resource],
      set: excluded({ provedBegan }),
      setWhere: sql`${provedBegan} < excluded.proved_began or ${provedBegan} > ${clock}`,
    })
    .returning({ provedBegan });
}
