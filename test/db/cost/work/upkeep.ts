import { randomUUID } from 'node:crypto';
import { startRun } from '../../../../db/backfill/runs.ts';
import { failedParts } from '../../../../db/catch-up/parking.ts';
import { acknowledgeIssue, refreshDataIssues } from '../../../../db/checks/check-data.ts';
import {
  allCompanies,
  companiesReconciled,
  companiesToCheck,
  forgetChanged,
} from '../../../../db/checks/companies-to-check.ts';
import { dropPayloads } from '../../../../db/events/retention.ts';
import { createFieldCatalogue } from '../../../../db/fields/field-catalogue.ts';
import { eventsOfRecord, listEvents, outcomesOf, readEvent } from '../../../../db/read/events.ts';
import { readHealth } from '../../../../db/read/health.ts';
import { listDataIssues, namesOfIssues } from '../../../../db/read/issues.ts';
import { keptEvents } from '../../../../db/read/kept-events.ts';
import { readStatus } from '../../../../db/read/status.ts';
import { traceRecord } from '../../../../db/read/trace.ts';
import { recordsWaiting } from '../../../../db/read/waiting.ts';
import { beat, claim, closeGate, leave } from '../../../../db/service-limit.ts';
import { eventOf, idOf, meterOf } from '../rows.ts';
import { numbers, type Work } from './work.ts';

export const upkeep: readonly Work[] = [
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
    name: 'companies to check are listed',
    rows: 20,
    asksForAll: 'It reads each company, and when it was checked.',
    run: async ({ db }) => {
      await allCompanies(db);
      await forgetChanged(db, []);
      await companiesToCheck(db, ['bills']);
    },
  },
  {
    name: 'companies that a reconcile changed are listed',
    rows: 20,
    run: async ({ db }, plot) => {
      const runId = idOf('run', plot, 1_000);
      await startRun(db, { runId, companyId: null, resource: null }, { kind: 'reconcile' });
      await companiesReconciled(db, runId);
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
      await catalogue.close();
    },
  },
  {
    name: 'payloads of old events are dropped',
    rows: 100,
    run: ({ db }) => dropPayloads(db, { days: 30, limit: 100 }),
  },
  {
    name: 'workers share a limit',
    rows: 5,
    run: async ({ db }) => {
      const worker = randomUUID();
      await beat(db, worker, 5_000);
      await claim(db, worker, { wanted: 2, limit: 2, inFlight: 0, goneAfterMs: 5_000 });
      await closeGate(db, 1);
      await leave(db, worker);
    },
  },
  {
    name: 'status and health are read',
    rows: 50,
    asksForAll: 'It counts all rows.',
    run: async ({ db }) => {
      await readStatus(db, { silenceHours: 1 });
      await readHealth(db, { silenceHours: 1 });
      await recordsWaiting(db, 20);
      await failedParts(db, ['SERVICE_ACCESS_DENIED']);
      const issues = await listDataIssues(db, {}, 20);
      await namesOfIssues(
        db,
        issues.map(({ id }) => id),
      );
    },
  },
  {
    name: 'events are listed and read',
    rows: 250,
    run: async ({ db }, plot) => {
      await listEvents(db, {}, { limit: 20 });
      await listEvents(db, { recordId: idOf('document', plot) }, { limit: 20, before: eventOf(plot, 20) });
      await readEvent(db, eventOf(plot, 1));
      await eventsOfRecord(db, 'document', idOf('document', plot));
      await keptEvents(db, { ids: [eventOf(plot, 1)] }, 'all', { limit: 20, after: undefined });
      await outcomesOf(
        db,
        numbers(1, 50).map((n) => eventOf(plot, n)),
      );
      await traceRecord(db, 'document', idOf('document', plot));
      await traceRecord(db, 'meter', meterOf(plot, 1));
    },
  },
];
