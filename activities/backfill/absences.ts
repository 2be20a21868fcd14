import type { RunState } from '../../contract/names.ts';
import { untilDecided } from '../../contract/words.ts';
import { countAbsent, onlyExplained, retireAbsent, type Seen } from '../../db/deletes/absent.ts';
import { absentSites, clearSiteQuarantine, endSiteDecisions } from '../../db/deletes/absent-sites.ts';
import { goneCompanies, livingOf } from '../../db/deletes/gone-companies.ts';
import { unlistRecords } from '../../db/records/unlist.ts';
import type { ListedResource } from '../../db/resources.ts';
import { confirmsPass, type PageManifest, type PassJudgement } from '../../service/stability.ts';
import type { ActivityDependencies } from '../dependencies.ts';

/** A listing of a company, or the list of companies. */
export interface ListingBackfill {
  readonly runId: string;
  readonly companyId: string | null;
  readonly resource: ListedResource;
}

export interface Pass {
  readonly manifest: readonly PageManifest[];
  readonly judgement: PassJudgement;
  readonly beganAt: string;
}

export interface PassResult {
  readonly done: boolean;
  readonly state: RunState;
  readonly reason?: string;
  /** Whether no row is absent from the listing. */
  readonly lacksNothing?: boolean;
}

/**
 * Judges a pass over a listing and, once the pass before agrees with it, tombstones the rows that both lack.
 */
export async function judgeListing(
  deps: ActivityDependencies,
  input: ListingBackfill,
  before: Pass | undefined,
  now: Pass,
): Promise<PassResult> {
  if (!now.judgement.stable) {
    const reason = `not stable: ${now.judgement.reasons.join('; ')}`;
    return { done: false, state: 'suspect', reason };
  }
  const ids = now.manifest.flatMap((page) => page.ids.filter((id) => id !== null));
  const seen = { ids, beganAt: now.beganAt };
  const agrees = before !== undefined && confirmsPass(before.manifest, now.manifest);
  const agreedSince = agrees ? before.beganAt : undefined;
  const result = await judgeAbsent(deps, input, seen, agreedSince);
  if (input.resource !== 'companies') return result;
  const ofSites = await judgeSites(deps, input.runId, seen, agreedSince);
  const results = [result, ofSites, await judgeGone(deps, input.runId, seen, agreedSince)];
  const reasons = results.flatMap(({ reason }) => reason ?? []);
  return {
    done: results.every(({ done }) => done),
    state: results.find(({ state }) => state !== 'complete')?.state ?? 'complete',
    lacksNothing: result.lacksNothing ?? false,
    ...(reasons.length === 0 ? {} : { reason: reasons.join('; ') }),
  };
}

/** `agreedSince` is when the pass began with which a stable one agrees; undefined without such a pass. */
async function judgeAbsent(
  deps: ActivityDependencies,
  input: ListingBackfill,
  { ids, beganAt }: Seen,
  agreedSince: string | undefined,
): Promise<PassResult> {
  const { db } = deps.warehouse;
  const listing = { ...input, configured: deps.companies };
  const { companyId, resource } = input;
  const { live, absent, shared } = await countAbsent(db, listing, { ids, beganAt });
  if (shared && companyId !== null && (ids.length > 0 || live === 0))
    await unlistRecords(db, resource, companyId, ids);
  if (absent === 0) return { done: true, state: 'complete', lacksNothing: true };
  if (agreedSince !== undefined) {
    const seen = { ids, beganAt: agreedSince };
    // An empty listing where rows live is likelier a fault.
    const cap = ids.length === 0 ? onlyExplained : deps.deletesCap;
    const { quarantined, awaited } = await retireAbsent(db, input.runId, listing, seen, cap);
    if (awaited > 0) await wakeFor(deps, input.resource);
    if (quarantined === 0) return { done: true, state: 'complete' };
    const lack =
      ids.length === 0
        ? `the service lists nothing where ${live} rows live`
        : `${quarantined} of ${live} rows are missing from the service`;
    return { done: true, state: 'suspect', reason: `${lack}: ${untilDecided}` };
  }
  const reason = `${absent} rows were absent from one pass and no second one agreed: nothing was tombstoned`;
  return { done: false, state: 'suspect', reason };
}

/** Wakes the catch-up of events that wait for records which are now tombstoned. */
async function wakeFor(deps: ActivityDependencies, resource: ListedResource): Promise<void> {
  if (resource === 'connections' || resource === 'documents') await deps.wake(resource);
}

/**
 * Tombstones sites that their company's record no longer names, once two passes read the same record. A
 * record that names no site at all is likely wrong: its sites are quarantined for somebody to decide. Sites
 * of a company that is gone go with it.
 */
async function judgeSites(
  deps: ActivityDependencies,
  runId: string,
  { ids: companyIds, beganAt }: Seen,
  agreedSince: string | undefined,
): Promise<PassResult> {
  const { db } = deps.warehouse;
  await endSiteDecisions(db, companyIds);
  const companies = await absentSites(db, companyIds, beganAt);
  await clearSiteQuarantine(
    db,
    companyIds,
    companies.map(({ companyId }) => companyId),
  );
  if (companies.length === 0) return { done: true, state: 'complete' };
  let quarantined = 0;
  let doubtful = 0;
  for (const { companyId, named, absent, confirmed } of companies) {
    if (agreedSince === undefined || !confirmed) {
      doubtful += absent;
      continue;
    }
    const seen = { ids: named, beganAt: agreedSince };
    const cap = named.length === 0 ? onlyExplained : deps.deletesCap;
    const retired = await retireAbsent(db, runId, { resource: 'sites', companyId }, seen, cap);
    quarantined += retired.quarantined;
  }
  return resultOf('sites', 'the records of one pass', doubtful, quarantined);
}

/**
 * Tombstones the records of companies that are gone, once two passes agree that these are. Records that
 * another company lists go to it. An empty list proves nothing about any company.
 */
async function judgeGone(
  deps: ActivityDependencies,
  runId: string,
  { ids: companyIds, beganAt }: Seen,
  agreedSince: string | undefined,
): Promise<PassResult> {
  const { db } = deps.warehouse;
  let quarantined = 0;
  let doubtful = 0;
  // Those of the settings live whether they are listed or not.
  const living = [...companyIds, ...deps.companies];
  const gone = companyIds.length === 0 ? [] : await goneCompanies(db, living);
  for (const listing of await livingOf(db, gone)) {
    await unlistRecords(db, listing.resource, listing.companyId, []);
    if (agreedSince === undefined) {
      doubtful += (await countAbsent(db, listing, { ids: [], beganAt })).absent;
      continue;
    }
    const seen = { ids: [], beganAt: agreedSince };
    const retired = await retireAbsent(db, runId, listing, seen, deps.deletesCap);
    quarantined += retired.quarantined;
    if (retired.awaited > 0) await wakeFor(deps, listing.resource);
  }
  return resultOf('records of companies that are gone', 'one pass', doubtful, quarantined);
}

function resultOf(what: string, from: string, doubtful: number, quarantined: number): PassResult {
  if (doubtful > 0) {
    const reason = `${doubtful} ${what} were absent from ${from} and no second one agreed: none of them was tombstoned`;
    return { done: false, state: 'suspect', reason };
  }
  if (quarantined === 0) return { done: true, state: 'complete' };
  const reason = `${quarantined} ${what} are missing from the service: ${untilDecided}`;
  return { done: true, state: 'suspect', reason };
}
