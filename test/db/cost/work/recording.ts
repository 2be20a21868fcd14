import { eq } from 'drizzle-orm';
import type { DeliveredEvent } from '../../../../contract/event.ts';
import { recordEvents } from '../../../../db/events/record.ts';
import { companies } from '../../../../db/schema/utility.ts';
import { connectionEvent, delivery, documentEvent, intervalsEvent } from '../../../support/events.ts';
import { idOf, meterOf } from '../rows.ts';
import { changedAt, numbers, type Work } from './work.ts';

/** Sixty events: 30 documents change, 10 are deleted, 5 are new, 10 connections change, 5 meters sync. */
function group(plot: number): DeliveredEvent[] {
  const company = { id: idOf('company', plot), externalId: 'e', publicId: 'p', name: 'n' };
  const site = { id: idOf('site', plot), name: 's' };
  const payloads = [
    ...numbers(1, 35).map((n) =>
      documentEvent('updated', idOf('document', plot, n > 30 ? n + 100 : n), changedAt, { company, site }),
    ),
    ...numbers(36, 45).map((n) =>
      documentEvent('deleted', idOf('document', plot, n), changedAt, { company, site }),
    ),
    ...numbers(1, 10).map((n) => ({
      ...connectionEvent('updated', idOf('connection', plot, n), changedAt, 'INVALID', 'VALID'),
      company,
      sitesRelations: [{ accountIds: ['a'], datasourceTypes: ['ELECTRICITY'], site }],
    })),
    ...numbers(1, 5).map((n) =>
      intervalsEvent(meterOf(plot, n), '2025-01-01T00:00:00', '2025-02-01T00:00:00', 3),
    ),
  ];
  return payloads.map((payload, at) => delivery(payload, `new event ${plot} ${at}`));
}

export const recording: readonly Work[] = [
  {
    name: 'a group of 60 events is recorded',
    rows: 60,
    run: ({ db }, plot) => recordEvents(db, group(plot)),
  },
  {
    name: 'a group of 60 events is recorded again',
    rows: 60,
    prepare: ({ db }, plot) => recordEvents(db, group(plot)),
    run: ({ db }, plot) => recordEvents(db, group(plot)),
  },
  {
    name: 'a group of 60 events is replayed',
    rows: 60,
    prepare: ({ db }, plot) => recordEvents(db, group(plot)),
    run: ({ db }, plot) => recordEvents(db, group(plot), { replay: 'all' }),
  },
  {
    name: 'a group of 60 events names the public id of their company',
    rows: 60,
    prepare: ({ db }, plot) =>
      db
        .update(companies)
        .set({ publicId: null })
        .where(eq(companies.id, idOf('company', plot))),
    run: ({ db }, plot) => recordEvents(db, group(plot)),
  },
  {
    name: 'a lone event is recorded',
    rows: 1,
    run: ({ db }, plot) => recordEvents(db, group(plot).slice(0, 1)),
  },
];
