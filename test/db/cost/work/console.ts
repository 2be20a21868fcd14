import type { Executor } from '../../../../db/connection/connect.ts';
import { readDeletes } from '../../../../db/deletes/decide.ts';
import {
  beginOperation,
  finishOperation,
  lastAudits,
  listOperations,
  readOperation,
} from '../../../../db/operations.ts';
import { readArrivals } from '../../../../db/read/arrivals.ts';
import { consoleBounds, mostCounted } from '../../../../db/read/bounds.ts';
import {
  connectionsNeedingAttention,
  listCompanies,
  listConnections,
  rangesWaiting,
  readCompany,
  readResources,
} from '../../../../db/read/companies.ts';
import { countEvents, type EventFilter, listEvents } from '../../../../db/read/events.ts';
import { findById } from '../../../../db/read/find.ts';
import { listDataIssues } from '../../../../db/read/issues.ts';
import { readWaiting } from '../../../../db/read/queue.ts';
import { listEnded, listRunning, readRun } from '../../../../db/read/runs.ts';
import { idOf, meterOf } from '../rows.ts';
import type { Work } from './work.ts';

async function listTwoPages(db: Executor, filter: EventFilter): Promise<void> {
  const { next } = await listEvents(db, filter, { limit: 10 });
  await listEvents(db, filter, { limit: 10, after: next ?? undefined });
}

/** What the pages of the console read and no command reads. */
export const consolePages: readonly Work[] = [
  {
    name: 'a company is shown',
    rows: 200,
    run: async ({ db }, plot) => {
      const id = idOf('company', plot);
      await readCompany(db, id);
      await readResources(db, id);
      await rangesWaiting(db, id);
      await listConnections(db, id);
    },
  },
  {
    name: 'a page of companies is listed',
    rows: 1_000,
    run: async ({ db }, plot) => {
      await listCompanies(db, { limit: 5 });
      await listCompanies(db, { limit: 5, after: { name: '', id: idOf('company', plot) } });
    },
  },
  {
    name: 'runs are listed',
    rows: 100,
    run: async ({ db }, plot) => {
      await listRunning(db);
      await listEnded(db, { limit: 10 });
      await listEnded(db, {
        limit: 10,
        before: { finishedAt: '2025-05-01T00:00:00Z', runId: idOf('company', plot) },
      });
      await readRun(db, idOf('company', plot));
      await readDeletes(db, { all: true, run: idOf('company', plot) });
    },
  },
  {
    name: 'an id is looked for',
    rows: 20,
    run: async ({ db }, plot) => {
      await findById(db, idOf('document', plot));
      await findById(db, meterOf(plot, 1));
    },
  },
  {
    name: 'operations are noted and listed',
    rows: 20,
    run: async ({ db }) => {
      const id = await beginOperation(db, {
        actor: 'ada',
        role: 'operator',
        source: 'command',
        action: 'resume',
        target: {},
      });
      await finishOperation(db, id, 'done', 'nothing is parked');
      await readOperation(db, id);
      await lastAudits(db);
      await listOperations(db, { actor: 'ada' }, { limit: 10, before: id + 1 });
      await listOperations(db, {}, { limit: 10 });
    },
  },
  {
    // Ten thousand records are counted, each with some events.
    name: 'waiting records and received events are counted up to a bound',
    rows: 40_000,
    run: async ({ db }) => {
      await readWaiting(db, mostCounted);
      await countEvents(db, { outcome: 'dead' }, 10_000);
      await countEvents(db, { outcome: 'pending' }, 10_000);
    },
  },
  {
    name: 'the arrivals of a day without events are added up',
    rows: 20,
    run: async ({ db }) => await readArrivals(db),
  },
  {
    name: 'a page of events is listed by outcome, failure and company',
    rows: 100,
    run: async ({ db }, plot) => {
      for (const outcome of ['pending', 'dead', 'missing', 'superseded', 'ignored'] as const)
        await listTwoPages(db, { outcome });
      await listTwoPages(db, { outcome: 'pending', code: 'SERVICE_ACCESS_DENIED' });
      await listTwoPages(db, { outcome: 'pending', queueOf: idOf('company', plot) });
      await listTwoPages(db, { companyId: idOf('company', plot) });
    },
  },
  {
    name: 'events are searched up to a bound if few match the filter',
    // Two pages are searched up to the bound.
    rows: 6 * consoleBounds.searchedMax,
    run: async ({ db }) => {
      await listTwoPages(db, { type: 'none' });
      await listTwoPages(db, { code: 'RECORD_NOT_SHOWN' });
      await listTwoPages(db, { outcome: 'missing', code: 'none' });
    },
  },
  {
    name: 'issues are listed page by page, and by their severity',
    rows: 500,
    run: async ({ db }, plot) => {
      const first = await listDataIssues(db, {}, 20);
      await listDataIssues(db, {}, 20, first.at(-1)?.id);
      await listDataIssues(db, { severity: 'error', unacknowledged: true }, 20);
      await listDataIssues(db, { checkName: 'amount_mismatch', unacknowledged: true }, 20);
      await listDataIssues(db, { companyId: idOf('company', plot) }, 20);
    },
  },
  {
    name: 'connections that need attention are listed',
    // Four thousand connections are looked at, and each of the twenty that are listed has some bills.
    rows: 3 * consoleBounds.connectionsMax,
    run: ({ db }) => connectionsNeedingAttention(db, { limit: 20 }),
  },
];
