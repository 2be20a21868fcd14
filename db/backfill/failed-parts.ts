import { and, desc, inArray, isNotNull, isNull, or, type SQL, sql } from 'drizzle-orm';
import type { FailureCode } from '../../contract/failures.ts';
import { isAmong } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { runs } from '../schema/reads.ts';
import { companies } from '../schema/utility.ts';

/** Whether a company has a live row. Failures of a company that is gone need no retry. */
export const livesCompany = (companyId: SQL): SQL => sql`exists (
        select
        from ${companies} c
        where c.id = ${companyId}
          and c.deleted_at is null
        offset 0
      )`;

/**
 * Reads live companies whose last read failed for one of these reasons. `everything` is true when
 * the list of companies itself could not be read.
 */
export async function failedParts(
  db: Executor,
  codes: readonly FailureCode[],
): Promise<{ companies: string[]; everything: boolean }> {
  const { companyId, resource, state, errorCode, startedAt } = runs;
  const last = db
    .selectDistinctOn([companyId, resource], { companyId, state, errorCode })
    .from(runs)
    .where(isNotNull(resource))
    .orderBy(companyId, resource, desc(startedAt))
    .as('last');
  const failed = await db
    .selectDistinct({ companyId: last.companyId })
    .from(last)
    .where(
      and(
        inArray(last.state, ['failed', 'partial']),
        isAmong(last.errorCode, codes),
        or(isNull(last.companyId), livesCompany(sql`${last.companyId}`)),
      ),
    )
    .orderBy(last.companyId);
  const companies = failed.flatMap((row) => row.companyId ?? []);
  return { companies, everything: companies.length < failed.length };
}
