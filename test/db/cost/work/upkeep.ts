import { sql } from 'drizzle-orm';
import { dropOldParts } from '../../../../db/backfill/retention.ts';
import { chooseCompanies } from '../../../../db/backfill/run-companies.ts';
import { failedParts, finishRun, startRun } from '../../../../db/backfill/runs.ts';
import { acknowledgeIssue, refreshDataIssues, refreshFieldIssues } from '../../../../db/checks/check-data.ts';
import { companiesToCheck, deleteOutdatedChecks } from '../../../../db/checks/companies-to-check.ts';
import type { Database } from '../../../../db/connection/connect.ts';
import { dropPayloads } from '../../../../db/events/journal.ts';
import { createFieldCatalogue } from '../../../../db/fields/field-catalogue.ts';
import { typesAmong, typesSeen } from '../../../../db/read/arrivals.ts';
import {
  eventsOfRecord,
  findEvents,
  listEvents,
  outcomesOf,
  readEvent,
  readKept,
} from '../../../../db/read/events.ts';
import { readHealth, readWatch } from '../../../../db/read/health.ts';
import { listDataIssues } from '../../../../db/read/issues.ts';
import { readStatus, readStatusAbout } from '../../../../db/read/status.ts';
import { traceRecord } from '../../../../db/read/trace.ts';
import { companyChanges } from '../../../../db/schema/metersync.ts';
import { noteLook, noteSent } from '../../../../db/watch/alarms.ts';
import { keepMonths } from '../../../../db/watch/months.ts';
import { eventOf, idOf, meterOf } from '../rows.ts';
import { numbers, type Work } from './work.ts';

const none = {
  pages: 0,
  passes: 0,
  reportedTotal: null,
  distinctIds: 0,
  inserted: 0,
  changed: 0,
  unchanged: 0,
  tombstoned: 0,
  rejected: 0,
};

/** Reads the health with a low bound of counting, which a small warehouse reaches, too. */
const healthOfFew = (db: Database) => readHealth(db, { silenceHours: 1, countMax: 20 });

export const upkeep: readonly Work[] = [
  {
    name: 'a look opens an alarm, notes that it was sent, and closes it',
    rows: 20,
    run: async ({ db }, plot) => {
      const at = '2026-11-23T00:00:00Z';
      const alarm = {
        alarm: 'EventsDead',
        key: `plot=${plot}`,
        saw: '1 event',
        todo: '',
        counts: {},
      } as const;
      const look = { at } as const;
      const unknown = new Set<never>();
      await noteLook(db, { ...look, seen: { raised: [alarm], unknown } });
      await noteLook(db, { ...look, seen: { raised: [{ ...alarm, saw: '2 events' }], unknown } });
      const { toSend } = await noteLook(db, { ...look, seen: { raised: [alarm], unknown } });
      for (const notice of toSend) await noteSent(db, { ...notice, at, error: null });
      const later = { ...look, at: '2026-11-24T00:00:00Z' };
      await noteLook(db, { ...later, seen: { raised: [alarm], unknown } });
      await noteLook(db, { ...later, seen: { raised: [], unknown } });
      await readWatch(db);
    },
  },
  {
    name: 'the data of a company is checked',
    rows: 500,
    run: async ({ db }, plot) => {
      await refreshDataIssues(db, [], { off: ['late_bill'] });
      await refreshDataIssues(db, [idOf('company', plot)], { today: '2025-06-01' });
      await acknowledgeIssue(db, 1, { note: 'known' });
    },
  },
  {
    name: 'the months of a company are read and kept',
    rows: 300,
    prepare: async ({ db }, plot) => {
      // A migration leaves a change note that stands for all companies.
      await db.delete(companyChanges);
      await db
        .insert(companyChanges)
        .values({ companyId: idOf('company', plot), changedAt: '2020-01-01T00:00:00Z' });
    },
    run: async ({ db }, plot) => {
      for (const view of ['monthly_usage', 'monthly_cost', 'monthly_by_site'])
        await db.execute(
          sql`select from ${sql.raw(`analytics.${view}`)} where company_id = ${idOf('company', plot)}`,
        );
      await keepMonths(db, { budgetSeconds: 0 });
    },
  },
  {
    name: 'companies to check are listed',
    rows: 20,
    asksForAll: 'It reads each company, and when it was checked.',
    run: async ({ db }, plot) => {
      await deleteOutdatedChecks(db, []);
      const runId = idOf('run', plot, 8);
      await companiesToCheck(db, { runId, kinds: ['bills'] });
      await chooseCompanies(db, runId, [idOf('company', plot)]);
      await companiesToCheck(db, { runId, kinds: ['bills'] });
    },
  },
  {
    name: 'the field catalogue records fields',
    rows: 60,
    run: async ({ db }, plot) => {
      const catalogue = createFieldCatalogue({
        db,
        onError: (error) => {
          throw error;
        },
      });
      const record = Object.fromEntries(numbers(1, 20).map((n) => [`field${n}`, n]));
      await catalogue.note(`resource ${plot}`, 'v2', [record]);
    },
  },
  {
    name: 'issues of new fields are opened and closed',
    rows: 200,
    run: async ({ db }) => {
      await refreshFieldIssues(db, []);
    },
  },
  {
    name: 'payloads of old events are dropped',
    rows: 100,
    run: ({ db }) => dropPayloads(db, { days: 30, limit: 100 }),
  },
  {
    name: 'old parts of runs are dropped',
    rows: 100,
    asksForAll: 'It looks for parts of each company.',
    run: ({ db }) => dropOldParts(db, { days: 30, limit: 100 }),
  },
  {
    name: 'health is read',
    // It reads 21 due and 42 other records of each kind of stale records, and the catalogue of tables.
    rows: 400,
    prepare: async ({ db }, plot) => {
      const companyId = idOf('company', plot);
      const run = { runId: idOf('run', plot, 1_000), companyId: null, resource: null };
      const counts = { ...none, missed: 3 };
      for (const resource of ['documents', 'meters']) {
        const part = { ...run, companyId, resource };
        await startRun(db, part);
        await finishRun(db, part, 'failed', { counts, error: 'SERVICE_ACCESS_DENIED: no' });
      }
      await startRun(db, run);
      await finishRun(db, run, 'partial', {});
      const under = { ...run, runId: idOf('run', plot, 2_000) };
      await startRun(db, under);
      await startRun(db, { ...under, companyId, resource: 'documents' });
      // The first look of a session opens every table and touches four times as many blocks. The pool closes
      // idle sessions, so the first look is not measured.
      await healthOfFew(db);
    },
    run: ({ db }) => healthOfFew(db),
  },
  {
    name: 'status is read',
    rows: 50,
    asksForAll: 'It counts all rows, or 10,000 of each table.',
    run: async ({ db }) => {
      await readStatus(db);
      await readStatusAbout(db, await readHealth(db));
      await failedParts(db, ['SERVICE_ACCESS_DENIED']);
      await listDataIssues(db, {}, 20);
    },
  },
  {
    name: 'events of an outcome are read for a replay',
    // It lists ten pages of ten events.
    rows: 500,
    run: async ({ db }) => {
      const atOnce = 10;
      for (const outcome of ['pending', 'dead', 'missing', 'superseded', 'ignored'] as const) {
        const filter = { outcome, unapplied: true };
        const portion = { most: atOnce, limit: atOnce };
        const first = await findEvents(db, filter, portion);
        await findEvents(db, filter, { ...portion, after: first.next ?? undefined });
      }
    },
  },
  {
    name: 'the types of the newest events are listed',
    rows: typesAmong,
    run: async ({ db }) => await typesSeen(db),
  },
  {
    name: 'events are listed and read',
    rows: 250,
    run: async ({ db }, plot) => {
      await listEvents(db, {}, { limit: 20 });
      const first = await listEvents(db, { recordId: idOf('document', plot) }, { limit: 2 });
      await listEvents(
        db,
        { recordId: idOf('document', plot) },
        { limit: 20, after: first.next ?? undefined },
      );
      await readEvent(db, eventOf(plot, 1));
      await eventsOfRecord(db, 'document', idOf('document', plot));
      const { ids } = await findEvents(db, { ids: [eventOf(plot, 1)] }, { most: 20, limit: 20 });
      await readKept(db, ids);
      await outcomesOf(
        db,
        numbers(1, 50).map((n) => eventOf(plot, n)),
      );
      await traceRecord(db, 'document', idOf('document', plot));
      await traceRecord(db, 'meter', meterOf(plot, 1));
    },
  },
];
