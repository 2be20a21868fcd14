import { Context } from '@temporalio/activity';
import PQueue from 'p-queue';
import { backfillBounds } from '../../contract/limits.ts';
import type { ReconciledResource, RunKind } from '../../contract/names.ts';
import { attemptPolicy } from '../../contract/retry-policy.ts';
import { countChosen, nextCompany, unreadOfLane } from '../../db/backfill/run-companies.ts';
import { cancellation, noteCursor, triesHere } from '../activity-context.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { failIfClosed } from '../gates.ts';
import { mapFailures } from '../map-failures.ts';
import { reasonOf, refusal } from '../own-failure.ts';
import { failPart, noteRunStart } from '../runs.ts';
import { giveUpResource, readCompany } from './company.ts';
import { backfillListing } from './listing.ts';
import { noteChosen, noteConfigured } from './named-companies.ts';
import { reconcileCompany } from './reconcile.ts';

/** A run as it began. */
export interface RunBegun {
  /** Whether the list of companies was read. */
  readonly listed: boolean;
  /** Whether companies were chosen for the run; otherwise it reads all. */
  readonly chosen: boolean;
  /** How many companies are read at the same time. */
  readonly lanes: number;
}

/** Reads companies of a run one after the other. */
export interface Lane extends Omit<RunBegun, 'lanes'> {
  readonly runId: string;
  readonly kind: RunKind;
  readonly lane: number;
}

export function backfillActivities(deps: ActivityDependencies) {
  const { db } = deps.warehouse;
  const { companiesAtOnce, metersAtOnce } = backfillBounds;
  const turns = new PQueue({ concurrency: metersAtOnce });
  return {
    /** Begins a run. A full run notes the companies of the settings and of the list. */
    beginRun: mapFailures(async ({ runId, kind }: { runId: string; kind: RunKind }): Promise<RunBegun> => {
      await noteRunStart(deps, runId, kind);
      const listed = kind === 'full' && (await backfillCompanies(deps, runId));
      if (kind === 'full') await noteConfigured(deps, { runId, listed });
      const chosen = await countChosen(db, runId, companiesAtOnce);
      return { listed, chosen: chosen > 0, lanes: chosen === 0 ? companiesAtOnce : chosen };
    }),

    /**
     * Reads companies until all of the run have been taken by a lane. Another attempt continues with the company
     * that this one was reading.
     */
    readCompanies: mapFailures(async (lane: Lane): Promise<void> => {
      const read = readerOf(deps, lane, turns);
      const next = async (done?: string) =>
        (await nextCompany(db, lane, done)) ?? (await unreadOfLane(db, lane));
      const isAgain = Context.current().info.attempt > 1;
      const first = isAgain ? await unreadOfLane(db, lane) : undefined;
      for (
        let companyId = first ?? (await next());
        companyId !== undefined;
        companyId = await next(companyId)
      )
        await read(companyId);
    }),
  };
}

/** Returns the function that reads a company of a lane. */
function readerOf(
  deps: ActivityDependencies,
  { runId, kind, chosen, listed }: Lane,
  turns: PQueue,
): (companyId: string) => Promise<void> {
  const skipped = new Set<ReconciledResource>();
  return async (companyId) => {
    const company = { runId, companyId };
    if (chosen && !(await noteChosen(deps, company, listed))) return;
    await untilGivenUp(attemptPolicy.triesOfPart[kind], {
      read: () =>
        kind === 'full' ? readCompany(deps, company, turns) : reconcileCompany(deps, company, skipped),
      giveUp: async (reason) => {
        const givenUp = await giveUpResource(deps, company, kind, reason);
        noteCursor({ companyId, givenUp });
      },
    });
  };
}

/**
 * Reads, and gives up a part that failed as often as allowed, or whose workers ended each time. Throws other
 * failures for Temporal to retry.
 */
async function untilGivenUp(
  triesMax: number,
  { read, giveUp }: { read: () => Promise<void>; giveUp: (reason: string) => Promise<void> },
): Promise<void> {
  if (triesHere() > triesMax) await giveUp('each worker that read it ended');
  for (;;) {
    try {
      return await read();
    } catch (error) {
      cancellation().throwIfAborted();
      if (triesHere() < triesMax) throw error;
      await giveUp(reasonOf(error).message);
    }
  }
}

/** Reads the list of companies. Returns false if the service has none, or refuses it. */
async function backfillCompanies(deps: ActivityDependencies, runId: string): Promise<boolean> {
  const key = { runId, companyId: null, resource: 'companies' } as const;
  try {
    await failIfClosed(deps);
    await backfillListing(deps, key);
    return deps.service.has('companies');
  } catch (error) {
    const failure = await refusal(deps, error);
    await failPart(deps, key, `${failure.code}: ${failure.message}`);
    if (failure.code === 'SERVICE_KEY_REFUSED') throw error;
    // Companies seen in events and configured ones are still read.
    deps.log.warn({ code: failure.code, err: failure }, 'the list of companies cannot be read');
    return false;
  }
}
