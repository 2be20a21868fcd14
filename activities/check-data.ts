import { Context } from '@temporalio/activity';
import type { CheckKind } from '../contract/names.ts';
import { changedFor, companiesToCheck, companiesTogether, refreshDataIssues } from '../db/check-data.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { failing } from './failing.ts';
import { heartbeat } from './heartbeat.ts';

export interface DataCheck {
  readonly runId: string;
  readonly kinds: readonly CheckKind[];
  /** All that are known when absent. */
  readonly companies?: readonly string[] | undefined;
  /** Of a reconcile: those alone that it, or an event since the one before, changed something for. */
  readonly changedOnly?: boolean;
}

export function checkActivities(deps: ActivityDependencies) {
  const { db } = deps.warehouse;
  return {
    /** Opens and closes issues, companies by companies; another attempt goes on where this one stopped. */
    checkData: failing(async ({ runId, kinds, companies, changedOnly }: DataCheck): Promise<void> => {
      const { info, cancellationSignal } = Context.current();
      let after = (info.heartbeatDetails as string | undefined) ?? null;
      const some = changedOnly ? changedFor(runId) : undefined;
      let [opened, closed] = [0, 0];
      for (;;) {
        cancellationSignal.throwIfAborted();
        const ids = companies ?? (await companiesToCheck(db, after, companiesTogether, some));
        // Without companies, too: what is open of a check that is off is closed.
        const refreshed = await refreshDataIssues(db, ids, { kinds, off: deps.checksOff });
        opened += refreshed.opened;
        closed += refreshed.closed;
        if (companies !== undefined || ids.length < companiesTogether) break;
        after = ids.at(-1) ?? null;
        heartbeat(after);
      }
      if (opened + closed > 0) deps.log.info({ runId, opened, closed }, 'the data was checked');
    }),
  };
}
