import { Failure } from '../../contract/failures.ts';
import type { CatchUpKind } from '../../contract/names.ts';
import { noteCompanies } from '../../db/backfill/companies.ts';
import { reviveKnown } from '../../db/backfill/known-companies.ts';
import type { ActivityDependencies } from '../dependencies.ts';

/**
 * Asks the service about a company that only events name, with one request: the first page of its listing of
 * what the events are about. If the service has records of it, gives the company a row, starts its first
 * backfill, and makes its other events due.
 * @throws Failure when the service refuses the request, or lists nothing
 */
export async function checkCompany(
  deps: ActivityDependencies,
  kind: Exclude<CatchUpKind, 'intervals'>,
  companyId: string,
): Promise<void> {
  const { service, warehouse } = deps;
  const endpoint = ([kind, 'connections', 'documents', 'usageData'] as const).find((one) => service.has(one));
  if (endpoint !== undefined) {
    const page = await service.page({ endpoint, params: { companyId }, page: 1, lane: 'live' });
    if (page.count === 0) throw new Failure('SERVICE_NOT_FOUND', `no ${endpoint} of the company are listed`);
  }
  // The backfill first: a crash after it has the company checked again.
  await deps.backfillFirst(companyId);
  await noteCompanies(warehouse.db, [companyId]);
  await reviveUnknown(deps);
}

/** Makes due what waited for companies that are known by now. */
export async function reviveUnknown(deps: Pick<ActivityDependencies, 'warehouse' | 'wake'>): Promise<void> {
  if ((await reviveKnown(deps.warehouse.db)) === 0) return;
  await Promise.all((['connections', 'documents'] as const).map((kind) => deps.wake(kind)));
}
