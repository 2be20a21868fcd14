import { Context } from '@temporalio/activity';
import { Failure } from '../../contract/failures.ts';
import { canonicalId } from '../../contract/values.ts';
import { refuseChosen } from '../../db/backfill/run-companies.ts';
import { deletePartsOfGone, finishRun, noteRunError } from '../../db/backfill/runs.ts';
import { isConfirmedCompany, noteCompanies, retireUnread } from '../../db/records/companies.ts';
import { listedByCompanies } from '../../db/resources.ts';
import type { ServiceClient } from '../../service/client.ts';
import { walkPages } from '../../service/walk.ts';
import { type ActivityDependencies, isConfigured } from '../dependencies.ts';
import type { CompanyKey } from './cursor.ts';

/**
 * The service's answer about a company that a person named: it lists or answers for it (`found`), has no such
 * company (`unknown`), refuses the key access to it (`denied`), or its answers leave this open (`unsure`).
 */
export type CompanyAnswer = 'found' | 'unknown' | 'denied' | 'unsure';

/** Explains to a person why the company is refused; undefined if it is not. */
export function explainRefusal(companyId: string, answer: CompanyAnswer): string | undefined {
  if (answer === 'unknown')
    return `the service has no company ${companyId}: it is in no list and has no records; check the id`;
  if (answer === 'denied')
    return `the service has no company ${companyId} for this API key (it answered 403): check the id, or have the key granted access`;
  return undefined;
}

/**
 * Asks the listings of a company until one answers with a record. If the list of companies was read and does
 * not contain it (`listed`), an empty listing does not prove that the company exists.
 * @throws Failure SERVICE_KEY_REFUSED
 */
async function probeCompany(
  service: Pick<ServiceClient, 'has' | 'page'>,
  companyId: string,
  listed: boolean,
): Promise<CompanyAnswer> {
  const answers = new Set<CompanyAnswer>();
  for (const endpoint of listedByCompanies) {
    if (!service.has(endpoint)) continue;
    try {
      const page = await service.page({ endpoint, params: { companyId }, page: 1, lane: 'backfill' });
      if (page.count > 0 || !listed) return 'found';
      answers.add('unknown');
    } catch (error) {
      answers.add(answerOf(error));
    }
  }
  if (answers.size === 0) return 'unsure';
  return (['unsure', 'denied', 'unknown'] as const).find((answer) => answers.has(answer)) ?? 'unsure';
}

function answerOf(error: unknown): CompanyAnswer {
  if (!(error instanceof Failure) || error.code === 'SERVICE_KEY_REFUSED') throw error;
  if (error.code === 'SERVICE_NOT_FOUND') return 'unknown';
  return error.code === 'SERVICE_ACCESS_DENIED' ? 'denied' : 'unsure';
}

/** Looks for the company in the list of companies, if the service allows that; then asks about it. */
export async function findCompany(
  service: Pick<ServiceClient, 'has' | 'page'>,
  companyId: string,
): Promise<CompanyAnswer> {
  const id = canonicalId(companyId);
  let listed = false;
  if (service.has('companies')) {
    try {
      const walk = { endpoint: 'companies', params: {}, lane: 'backfill', judged: false } as const;
      for await (const { ids } of walkPages({ client: service, ...walk }))
        if (ids.includes(id)) return 'found';
      listed = true;
    } catch (error) {
      answerOf(error);
    }
  }
  return await probeCompany(service, id, listed);
}

/**
 * Notes companies that a person named, so that they are read, also if the answers about them are unsure.
 * Refuses companies that the service does not have, and tombstones their rows if nothing of them was ever read.
 * @param named.listed whether the list of companies was read
 */
async function noteNamed(
  deps: ActivityDependencies,
  { ids, listed }: { readonly ids: readonly string[]; readonly listed: boolean },
): Promise<{ readonly noted: string[]; readonly refused: string[] }> {
  const { db } = deps.warehouse;
  const noted: string[] = [];
  const refused: string[] = [];
  for (const id of ids) {
    Context.current().cancellationSignal.throwIfAborted();
    const answer = (await isConfirmedCompany(db, id))
      ? 'found'
      : await probeCompany(deps.service, id, listed);
    // A configured company to which the key has no access yet is parked until somebody grants access.
    const isRefused = answer === 'unknown' || (answer === 'denied' && !isConfigured(deps, id));
    (isRefused ? refused : noted).push(id);
    if (isRefused) await retireUnread(db, id);
  }
  if (refused.length > 0)
    deps.log.warn({ companies: refused }, 'the service does not have companies that were named');
  await noteCompanies(db, noted);
  return { noted, refused };
}

/** Notes a company that was chosen for a run. Returns false if the service does not have it. */
export async function noteChosen(
  deps: ActivityDependencies,
  { runId, companyId }: CompanyKey,
  listed: boolean,
): Promise<boolean> {
  const { refused } = await noteNamed(deps, { ids: [companyId], listed });
  await refuseChosen(deps.warehouse.db, runId, refused);
  return refused.length === 0;
}

/** Notes the companies of the settings. The run's error names companies that the service does not have. */
export async function noteConfigured(
  deps: ActivityDependencies,
  { runId, listed }: { readonly runId: string; readonly listed: boolean },
): Promise<void> {
  const { db } = deps.warehouse;
  const ids = [...new Set(deps.companies.map(canonicalId))];
  const { refused } = await noteNamed(deps, { ids, listed });
  if (refused.length === 0) return;
  const error = `SERVICE_COMPANIES names ${refused.join(', ')}, which the service does not have`;
  const key = { runId, companyId: null, resource: 'companies' } as const;
  if (deps.service.has('companies')) await noteRunError(db, key, error);
  // Without a list of companies a wrong id looks like a wrong path: a run that read nothing is not complete.
  else await finishRun(db, key, 'failed', { error: `SERVICE_NOT_FOUND: ${error}` });
}

/**
 * Tombstones a company whose every listing was refused, and deletes its parts of the run; returns whether it
 * did. Keeps a company of the settings, and one that was read before.
 */
export async function deleteUnread(
  deps: ActivityDependencies,
  { runId, companyId }: CompanyKey,
): Promise<boolean> {
  const { db } = deps.warehouse;
  if (isConfigured(deps, companyId)) return false;
  if (await isConfirmedCompany(db, companyId)) return false;
  await retireUnread(db, companyId);
  return await deletePartsOfGone(db, { runId, companyId });
}
