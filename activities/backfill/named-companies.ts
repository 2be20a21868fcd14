import { Context } from '@temporalio/activity';
import type { EndpointName } from '../../contract/endpoints.ts';
import { Failure } from '../../contract/failures.ts';
import { finishRun, forgetPartsOfGone, noteRunError } from '../../db/backfill/runs.ts';
import { forgetStranger, isKnownCompany } from '../../db/backfill/strangers.ts';
import { noteCompanies } from '../../db/companies.ts';
import type { ServiceClient } from '../../service/client.ts';
import { walkPages } from '../../service/walk.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { heartbeat } from '../heartbeat.ts';

/**
 * What the service says of a company that a person named. `shown`: it lists the company or answers for it. `unknown`: it
 * has none of that id. `denied`: the key may not see it. `unsure`: its answers tell nothing now.
 */
export type Word = 'shown' | 'unknown' | 'denied' | 'unsure';

const listings = [
  'connections',
  'documents',
  'meters',
  'usageData',
] as const satisfies readonly EndpointName[];

/** Why a company of that word is refused, in words for a person. */
export function refusalOf(companyId: string, word: Word): string | undefined {
  if (word === 'unknown')
    return `the service has no company ${companyId}: it is in no list and has no records; check the id`;
  if (word === 'denied')
    return `the service has no company ${companyId} for this API key (it answered 403): check the id, or have the key granted access`;
  return undefined;
}

/**
 * Asks the listings of a company until one shows a record.
 * @param listed whether the list of companies was read, without this one: then an empty listing proves nothing
 * @throws Failure SERVICE_KEY_REFUSED
 */
export async function askAbout(
  service: Pick<ServiceClient, 'has' | 'page'>,
  companyId: string,
  listed: boolean,
): Promise<Word> {
  const words = new Set<Word>();
  for (const endpoint of listings) {
    if (!service.has(endpoint)) continue;
    try {
      const page = await service.page({ endpoint, params: { companyId }, page: 1, lane: 'backfill' });
      if (page.count > 0 || !listed) return 'shown';
      words.add('unknown');
    } catch (error) {
      words.add(wordOf(error));
    }
  }
  if (words.size === 0) return 'unsure';
  return (['unsure', 'denied', 'unknown'] as const).find((word) => words.has(word)) ?? 'unsure';
}

function wordOf(error: unknown): Word {
  if (!(error instanceof Failure) || error.code === 'SERVICE_KEY_REFUSED') throw error;
  if (error.code === 'SERVICE_NOT_FOUND') return 'unknown';
  return error.code === 'SERVICE_ACCESS_DENIED' ? 'denied' : 'unsure';
}

/** The same, where the list of companies was not just read: it is read first, as far as it may be. */
export async function lookFor(
  service: Pick<ServiceClient, 'has' | 'page'>,
  companyId: string,
): Promise<Word> {
  const id = companyId.toLowerCase();
  let listed = false;
  if (service.has('companies')) {
    try {
      const pages = walkPages({
        ...{ client: service, endpoint: 'companies', params: {}, lane: 'backfill', judged: false },
      });
      for await (const page of pages) if (page.ids.some((one) => one?.toLowerCase() === id)) return 'shown';
      listed = true;
    } catch (error) {
      wordOf(error);
    }
  }
  return await askAbout(service, id, listed);
}

/**
 * Notes companies that a person named, so that they are read. Those that the service does not have are refused, and a row that
 * they left is gone. What the service's answers do not tell is for the read to find out.
 * @param named.listed whether the list of companies was read
 */
export async function noteNamed(
  deps: ActivityDependencies,
  { ids, listed }: { readonly ids: readonly string[]; readonly listed: boolean },
): Promise<{ readonly noted: string[]; readonly refused: string[] }> {
  const { db } = deps.warehouse;
  const noted: string[] = [];
  const refused: string[] = [];
  for (const id of ids) {
    Context.current().cancellationSignal.throwIfAborted();
    heartbeat();
    const known = await isKnownCompany(db, id);
    const word = known ? 'shown' : await askAbout(deps.service, id, listed);
    // A company of the settings whose key is still to be granted access is parked, for somebody to grant it.
    const isRefused = word === 'unknown' || (word === 'denied' && !isConfigured(deps, id));
    (isRefused ? refused : noted).push(id);
    if (isRefused) await forgetStranger(db, id);
  }
  if (refused.length > 0)
    deps.log.warn({ companies: refused }, 'the service does not have companies that were named');
  await noteCompanies(db, noted);
  return { noted, refused };
}

/** Notes the companies of the settings; the run says which of them the service does not have. */
export async function noteConfigured(
  deps: ActivityDependencies,
  { runId, listed }: { readonly runId: string; readonly listed: boolean },
): Promise<void> {
  const { db } = deps.warehouse;
  const ids = [...new Set(deps.companies.map((id) => id.toLowerCase()))];
  const { refused } = await noteNamed(deps, { ids, listed });
  if (refused.length === 0) return;
  const error = `SERVICE_COMPANIES names ${refused.join(', ')}, which the service does not have`;
  const key = { runId, companyId: null, resource: 'companies' } as const;
  if (deps.service.has('companies')) await noteRunError(db, key, error);
  // Without a list of companies nobody can tell a wrong id from wrong paths: a run that read nothing is not complete.
  else await finishRun(db, key, 'failed', { error: `SERVICE_NOT_FOUND: ${error}` });
}

const isConfigured = ({ companies }: ActivityDependencies, companyId: string): boolean =>
  companies.some((id) => id.toLowerCase() === companyId);

/**
 * Forgets a company whose every listing was refused and that nothing vouches for, together with the run's parts of it. One of
 * the settings, or one whose events wait, is kept.
 * @returns whether it is gone
 */
export async function forgetUnread(
  deps: ActivityDependencies,
  { runId, companyId }: { readonly runId: string; readonly companyId: string },
): Promise<boolean> {
  const { db } = deps.warehouse;
  if (isConfigured(deps, companyId)) return false;
  if (await isKnownCompany(db, companyId)) return false;
  await forgetStranger(db, companyId);
  return await forgetPartsOfGone(db, { runId, companyId });
}
