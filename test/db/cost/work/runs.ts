import { finishListing, notePages, readManifest } from '../../../../db/backfill/manifest.ts';
import {
  chooseCompanies,
  companiesAfter,
  countChosen,
  metersAfter,
  nextCompany,
  refuseChosen,
  unreadOfLane,
} from '../../../../db/backfill/run-companies.ts';
import {
  concludeRun,
  failPartsLeft,
  failRunAndParts,
  runsUnderWay,
} from '../../../../db/backfill/run-end.ts';
import {
  finishRun,
  notePartsMissing,
  noteProgress,
  readCompanyInRun,
  startRun,
} from '../../../../db/backfill/runs.ts';
import { readRunProgress } from '../../../../db/read/runs.ts';
import { idOf } from '../rows.ts';
import { numbers, readAt, type Work } from './work.ts';

const counts = {
  pages: 1,
  passes: 1,
  reportedTotal: 50,
  distinctIds: 50,
  inserted: 50,
  changed: 0,
  unchanged: 0,
  tombstoned: 0,
  rejected: 0,
};

export const runs: readonly Work[] = [
  {
    name: 'a run of a company begins, progresses and ends',
    rows: 20,
    run: async ({ db }, plot) => {
      const [runId, companyId] = [idOf('run', plot, 1_000), idOf('company', plot)];
      const part = { runId, companyId, resource: 'documents' } as const;
      await startRun(db, { runId, companyId: null, resource: null });
      await startRun(db, part);
      for (const pass of [1, 2]) {
        for (const asked of numbers(1, 3)) {
          const page = { asked, currentPage: asked, total: 3, hasNext: asked < 3, ids: ['a'], readAt };
          await notePages(db, { ...part, pass }, [page]);
        }
        await readManifest(db, { ...part, pass });
      }
      await noteProgress(db, part, counts);
      await notePartsMissing(
        db,
        part,
        ['meters', 'connections'],
        'the endpoint catalogue has no such endpoint',
      );
      await startRun(db, part);
      const end = {
        state: 'complete',
        counts,
        provedBegan: readAt,
        lacksNothing: true,
        mayHaveMissed: true,
      } as const;
      await finishListing(db, part, end);
      await finishListing(db, part, { ...end, mayHaveMissed: false });
      for (const resource of ['connections', 'meters', 'usageData'] as const) {
        await finishListing(db, { ...part, resource }, end);
        await finishListing(db, { ...part, resource }, { ...end, mayHaveMissed: false });
      }
      await finishListing(db, { ...part, companyId: null, resource: 'companies' }, end);
      for (const resource of ['documents', 'usageData', 'intervals'])
        await finishRun(db, { ...part, resource }, 'complete', { counts });
      await finishRun(db, { ...part, companyId: null, resource: 'companies' }, 'complete');
      await finishRun(db, { runId, companyId: null, resource: null }, 'complete');
      await readCompanyInRun(db, { runId, companyId });
      await runsUnderWay(db);
      await failRunAndParts(db, runId, 'it failed');
      await failPartsLeft(db);
      await concludeRun(db, runId);
    },
  },
  {
    name: 'the progress of a run is read',
    rows: 20,
    asksForAll: 'It counts all companies.',
    prepare: async ({ db }, plot) => {
      const runId = idOf('run', plot, 1_000);
      await startRun(db, { runId, companyId: null, resource: null });
      await startRun(db, { runId, companyId: idOf('company', plot), resource: 'intervals' });
    },
    run: ({ db }, plot) => readRunProgress(db, idOf('run', plot, 1_000)),
  },
  {
    name: 'companies and meters are read in batches',
    rows: 20,
    run: async ({ db }, plot) => {
      await companiesAfter(db, idOf('company', plot), 10);
      await companiesAfter(db, null, 10);
      const [runId, companyId] = [idOf('run', plot, 2_000), idOf('company', plot)];
      await chooseCompanies(db, runId, [companyId]);
      await countChosen(db, runId, 8);
      await startRun(db, { runId, companyId: null, resource: null });
      for (const chosen of [true, false]) await nextCompany(db, { runId, lane: Number(chosen), chosen });
      await unreadOfLane(db, { runId, lane: 0 });
      await refuseChosen(db, runId, [companyId]);
      await metersAfter(db, idOf('company', plot), null, 3);
      await metersAfter(db, idOf('company', plot), `meter ${plot} 2`, 3);
    },
  },
];
