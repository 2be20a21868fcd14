import { type SQL, sql } from 'drizzle-orm';
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

/** What a walk found. */
type Found = 'page' | 'absences';

/**
 * Whether a page, or the absences, of a walk are not behind the fence of their listing, which is
 * locked. Once its own walk is proved, a page comes late, too: an attempt that froze wrote it, and
 * another attempt has read it since. A fence in the future does not count, because the warehouse's
 * clock was wrong when it was set.
 */
export function isAhead({ began, ...listing }: Walk, what: Found): SQL {
  const { companyId, resource } = listingOf(listing);
  return sql`not coalesce((
          select
            proved_began ${sql.raw(what === 'page' ? '>=' : '>')} ${began}::timestamptz
              and proved_began <= clock_timestamp()
          from ${listings}
          where company_id = ${companyId}::uuid and resource = ${resource}
          for share
        ), false)`;
}

/** Locks the fence of a listing. Returns whether a page, or the absences, of a walk are behind it. */
export async function isBehind(tx: Executor, walk: Walk, what: Found): Promise<boolean> {
  const { rows } = await tx.execute<{ ahead: boolean }>(
    sql`select ${isAhead(walk, what)} as ahead`,
  );
  return rows[0]?.ahead === false;
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
      setWhere: sql`${provedBegan} < excluded.proved_began or ${provedBegan} > clock_timestamp()`,
    })
    .returning({ provedBegan });
}
