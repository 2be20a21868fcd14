import { onlyExplained } from '../../contract/deletes-cap.ts';
import type { RunState } from '../../contract/names.ts';
import { agreeing, counted, untilDecided } from '../../contract/words.ts';
import type { Listing, Seen } from '../../db/deletes/absence.ts';
import { clearQuarantine, countAbsent, retireAbsent } from '../../db/deletes/absent.ts';
import { goneCompanies, livingOf, sitesInDoubt } from '../../db/deletes/gone-companies.ts';
import { forgetListed } from '../../db/records/also-listed.ts';
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
  /** When the pass began that is proved complete; absent if none is. */
  readonly provedBegan?: string;
  /** Whether no row is absent from the listing. */
  readonly lacksNothing?: boolean;
}

/** Judges a pass over a listing. Tombstones the rows that it lacks once the previous pass agrees with it. */
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
  const ofCompanies = { ...seen, of: input };
  const ofSites = await judgeSites(deps, input.runId, ofCompanies, agreedSince);
  const results = [result, ofSites, await judgeGone(deps, input.runId, ofCompanies, agreedSince)];
  const reasons = results.flatMap(({ reason }) => reason ?? []);
  return {
    done: results.every(({ done }) => done),
    state: results.find(({ state }) => state !== 'complete')?.state ?? 'complete',
    ...(result.provedBegan === undefined ? {} : { provedBegan: result.provedBegan }),
    lacksNothing: result.lacksNothing ?? false,
    ...(reasons.length === 0 ? {} : { reason: reasons.join('; ') }),
  };
}

/** Counts the rows of a listing that a pass does not contain, and how many of them are held back. */
interface Judged {
  readonly live: number;
  readonly absent: number;
  readonly quarantined: number;
  /** Whether nothing was tombstoned because a later walk was proved. */
  readonly overtaken?: boolean | undefined;
}

/** Tombstones rows that two stable passes lack. Without `agreedSince`, the first's start, it does nothing. */
async function judgeRows(
  deps: ActivityDependencies,
  runId: string,
  listing: Listing,
  { ids, beganAt, of = listing }: Seen,
  agreedSince: string | undefined,
): Promise<Judged> {
  const { db } = deps.warehouse;
  const { resource, companyId } = listing;
  let { live, absent, shared } = await countAbsent(db, listing, { ids, beganAt });
  if (shared && companyId !== null) {
    await forgetListed(db, { resource, companyId }, { ids, beganAt, of });
    if (absent > 0) ({ live, absent } = await countAbsent(db, listing, { ids, beganAt }));
  }
  if (absent === 0 || agreedSince === undefined) return { live, absent, quarantined: 0 };
  const seen = { ids, beganAt: agreedSince, of };
  // An empty listing although there are live rows is more likely a fault of the service than a deletion.
  const cap = ids.length === 0 ? onlyExplained : deps.deletesCap;
  const { quarantined, awaited, overtaken } = await retireAbsent(db, runId, listing, seen, cap);
  if (awaited > 0) await deps.startSweep();
  return { live, absent, quarantined, overtaken };
}

async function judgeAbsent(
  deps: ActivityDependencies,
  { runId, ...listing }: ListingBackfill,
  seen: Seen,
  agreedSince: string | undefined,
): Promise<PassResult> {
  const configured = deps.companies;
  const judged = await judgeRows(deps, runId, { ...listing, configured }, seen, agreedSince);
  const { live, absent, quarantined, overtaken } = judged;
  if (absent === 0) return { done: true, state: 'complete', lacksNothing: true, provedBegan: seen.beganAt };
  if (agreedSince === undefined) {
    const reason = `${counted(absent, 'row')} ${agreeing(absent, 'was', 'were')} missing from one pass and no second one agreed: nothing was tombstoned`;
    return { done: false, state: 'suspect', reason };
  }
  if (overtaken) return { done: false, state: 'suspect', reason: overtakenBy };
  const proved = { done: true, provedBegan: agreedSince } as const;
  if (quarantined === 0) return { ...proved, state: 'complete' };
  const lack =
    seen.ids.length === 0
      ? `the service lists nothing where ${counted(live, 'row')} ${agreeing(live, 'lives', 'live')}`
      : `${quarantined} of ${counted(live, 'row')} ${agreeing(quarantined, 'is', 'are')} missing from the service`;
  return { ...proved, state: 'suspect', reason: `${lack}: ${untilDecided}` };
}

const overtakenBy = 'a later walk over the listing was proved meanwhile: nothing was tombstoned';

/**
 * Tombstones sites that their company's record no longer names, once two passes read the same record. If it
 * names no site, it is likely wrong: its sites are quarantined. Sites go with a company that is gone.
 */
async function judgeSites(
  deps: ActivityDependencies,
  runId: string,
  { ids: companyIds, beganAt, of }: Seen,
  agreedSince: string | undefined,
): Promise<PassResult> {
  const { db } = deps.warehouse;
  let quarantined = 0;
  let doubtful = 0;
  for (const { companyId, named, confirmed } of await sitesInDoubt(db, companyIds, beganAt)) {
    const listing = { resource: 'sites', companyId } as const;
    const since = confirmed ? agreedSince : undefined;
    const judged = await judgeRows(deps, runId, listing, { ids: named, beganAt, of }, since);
    if (judged.absent === 0) await clearQuarantine(db, listing, beganAt);
    if (since === undefined || judged.overtaken) doubtful += judged.absent;
    quarantined += judged.quarantined;
  }
  return resultOf(['site', 'sites'], 'the records of one pass', doubtful, quarantined);
}

/**
 * Tombstones the records of companies that the service no longer lists, once two passes agree. Records that
 * another company also lists then belong to that company. An empty list of companies proves nothing.
 */
async function judgeGone(
  deps: ActivityDependencies,
  runId: string,
  { ids: companyIds, beganAt, of }: Seen,
  agreedSince: string | undefined,
): Promise<PassResult> {
  const { db } = deps.warehouse;
  let quarantined = 0;
  let doubtful = 0;
  // Companies of the settings count as living even if the service does not list them.
  const living = [...companyIds, ...deps.companies];
  const gone = companyIds.length === 0 ? [] : await goneCompanies(db, living);
  for (const listing of await livingOf(db, gone)) {
    const seen = { ids: [], beganAt, of };
    const judged = await judgeRows(deps, runId, listing, seen, agreedSince);
    if (agreedSince === undefined || judged.overtaken) doubtful += judged.absent;
    quarantined += judged.quarantined;
  }
  return resultOf(
    ['record of companies that are gone', 'records of companies that are gone'],
    'one pass',
    doubtful,
    quarantined,
  );
}

function resultOf(
  [one, many]: readonly [string, string],
  from: string,
  doubtful: number,
  quarantined: number,
): PassResult {
  if (doubtful > 0) {
    const reason = `${counted(doubtful, one, many)} ${agreeing(doubtful, 'was', 'were')} missing from ${from} and no second one agreed: nothing was tombstoned`;
    return { done: false, state: 'suspect', reason };
  }
  if (quarantined === 0) return { done: true, state: 'complete' };
  const reason = `${counted(quarantined, one, many)} ${agreeing(quarantined, 'is', 'are')} missing from the service: ${untilDecided}`;
  return { done: true, state: 'suspect', reason };
}
