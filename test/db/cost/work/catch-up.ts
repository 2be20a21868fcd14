import { sql } from 'drizzle-orm';
import type { CatchUpKind } from '../../../../contract/names.ts';
import { insertNamedSites, unknownNeighbours } from '../../../../db/events/neighbours.ts';
import { isKnownMeter } from '../../../../db/events/ranges.ts';
import { listedRecords, moveToCompany, settleRecords } from '../../../../db/events/settle.ts';
import {
  anyPending,
  dueOwners,
  dueRecords,
  nextDue,
  pendingAmong,
  warehouseNow,
} from '../../../../db/queue/due.ts';
import {
  claimProbe,
  closedAmong,
  closeGate,
  openGate,
  openGates,
  recordsToProbe,
  serviceScope,
  whyServiceClosed,
} from '../../../../db/queue/gates.ts';
import {
  postpone,
  postponeDocuments,
  postponeUnknown,
  reviveFailed,
  usageUnstable,
} from '../../../../db/queue/postpone.ts';
import { pendingOf, queueName } from '../../../../db/queue/queue.ts';
import { introduceCompany, isConfirmedCompany, retireUnread } from '../../../../db/records/companies.ts';
import { liveUsage, usageListedByRecords } from '../../../../db/records/usage.ts';
import { eventOf, idOf, meterOf } from '../rows.ts';
import { numbers, readAt, type Work } from './work.ts';

const documents = (plot: number, count: number): string[] =>
  numbers(1, count).map((n) => idOf('document', plot, n));
const connections = (plot: number): string[] => numbers(1, 20).map((n) => idOf('connection', plot, n));
const kinds: readonly CatchUpKind[] = ['connections', 'documents', 'intervals'];
const denied = { code: 'SERVICE_ACCESS_DENIED', message: 'denied' } as const;
const owner = (kind: CatchUpKind, plot: number): string =>
  kind === 'intervals' ? meterOf(plot, 2) : idOf('company', plot);

export const catchUp: readonly Work[] = [
  ...kinds.map(
    (kind): Work => ({
      name: `some given owners are asked for due ${kind}`,
      rows: 50,
      run: async ({ db }, plot) => {
        await dueOwners(db, kind, 10, { among: [owner(kind, plot)] });
        await closedAmong(db, [queueName({ kind, owner: owner(kind, plot) })]);
      },
    }),
  ),
  ...kinds.map(
    (kind): Work => ({
      name: `owners with due ${kind} are listed, and when the next event is due`,
      rows: 50,
      run: async ({ db }) => {
        await dueOwners(db, kind, 10);
        await nextDue(db, readAt);
      },
    }),
  ),
  {
    name: 'the pending events of a group are looked up',
    rows: 50,
    run: async ({ db }, plot) => {
      const ids = numbers(1, 50).map((n) => eventOf(plot, n));
      await pendingAmong(db, ids);
      await anyPending(db, ids);
    },
  },
  {
    name: 'one document is caught up',
    rows: 5,
    run: async ({ db }, plot) => {
      await warehouseNow(db);
      await dueRecords(db, 'documents', idOf('company', plot), 1);
      await settleRecords(db, 'documents', documents(plot, 1), readAt, { companyId: idOf('company', plot) });
    },
  },
  ...[50, 500].map(
    (count): Work => ({
      name: `${count} documents of a company are caught up`,
      rows: 3 * count,
      run: async ({ db }, plot) => {
        const companyId = idOf('company', plot);
        const ids = documents(plot, count);
        await dueRecords(db, 'documents', companyId, 500);
        await liveUsage(db, ids);
        await usageListedByRecords(db, ids);
        await moveToCompany(db, companyId, ids);
        await unknownNeighbours(db, 'documents', companyId, ids);
        const cap = { rows: 1_000, percent: 100 };
        await settleRecords(db, 'documents', ids, readAt, { companyId, notFound: ids.slice(0, 5), cap });
      },
    }),
  ),
  {
    name: 'the records of events that a backfill settles are looked up',
    rows: 500,
    run: ({ db }, plot) =>
      listedRecords(db, 'documents', idOf('company', plot), ['documents', 'usageData'], 50_000),
  },
  {
    name: 'the connections of a company are caught up',
    rows: 100,
    run: async ({ db }, plot) => {
      const companyId = idOf('company', plot);
      await dueRecords(db, 'connections', companyId, 5_000);
      await unknownNeighbours(db, 'connections', companyId, connections(plot));
      await settleRecords(db, 'connections', connections(plot), readAt, {
        companyId,
        notFound: connections(plot),
      });
    },
  },
  {
    name: 'documents are given up after too many attempts',
    rows: 150,
    prepare: ({ db }, plot) =>
      db.execute(sql`update metersync.journal
        set error_code = 'RECORD_NOT_SHOWN', attempts = 100, occurred_at = '2030-01-01'
        where outcome = 'pending' and queue = ${`document/${idOf('company', plot)}`}`),
    run: ({ db }, plot) =>
      settleRecords(db, 'documents', documents(plot, 50), readAt, {
        companyId: idOf('company', plot),
        notFound: documents(plot, 5),
      }),
  },
  {
    name: 'connections are given up',
    rows: 100,
    prepare: ({ db }, plot) =>
      db.execute(sql`update metersync.journal set error_code = 'RECORD_NOT_SHOWN', attempts = 100
        where outcome = 'pending' and queue = ${`connection/${idOf('company', plot)}`}`),
    run: ({ db }, plot) =>
      settleRecords(db, 'connections', connections(plot), readAt, {
        companyId: idOf('company', plot),
        notFound: connections(plot),
      }),
  },
  {
    name: 'documents back off after a failed read',
    rows: 150,
    prepare: ({ db }, plot) =>
      db.execute(sql`update metersync.journal set error_code = 'LISTING_UNSTABLE', attempts = 100
        where outcome = 'pending' and kind = 'document' and record_id = ${documents(plot, 3)[2]}`),
    run: async ({ db }, plot) => {
      await postponeDocuments(db, documents(plot, 1), readAt, {
        code: 'SERVICE_NOT_FOUND',
        message: 'm',
      });
      await postponeDocuments(db, documents(plot, 50), readAt, usageUnstable);
    },
  },
  ...kinds.map(
    (kind): Work => ({
      name: `the gate of an owner of ${kind} is closed, probed and opened`,
      rows: 50,
      run: async ({ db }, plot) => {
        const scope = queueName({ kind, owner: owner(kind, plot) });
        await closeGate(db, scope, denied);
        await claimProbe(db, scope);
        await openGate(db, scope);
      },
    }),
  ),
  ...kinds.map(
    (kind): Work => ({
      name: `${kind} of an unknown owner back off`,
      rows: 50,
      prepare: ({ db }, plot) =>
        db.execute(sql`update metersync.journal set error_code = 'UNKNOWN_TO_SERVICE', attempts = 100
          where outcome = 'pending' and queue = ${`${kind.slice(0, -1)}/${owner(kind, plot)}`}`),
      run: async ({ db }, plot) => {
        if (kind === 'intervals') await isKnownMeter(db, owner(kind, plot));
        await postponeUnknown(db, kind, owner(kind, plot), 'nobody knows');
      },
    }),
  ),
  {
    name: 'a company that only events named is introduced',
    rows: 60,
    prepare: ({ db }, plot) =>
      db.execute(sql`delete from utility.companies where id = ${idOf('company', plot)}::uuid`),
    run: async ({ db }, plot) => {
      await unknownNeighbours(db, 'documents', idOf('company', plot), documents(plot, 50));
      await introduceCompany(db, idOf('company', plot));
      await insertNamedSites(db, 'documents', documents(plot, 50));
      await insertNamedSites(db, 'connections', connections(plot));
    },
  },
  {
    name: 'a company that the service does not have is tombstoned',
    rows: 10,
    prepare: async ({ db }, plot) => {
      const companyId = idOf('company', plot);
      for (const table of ['documents', 'connections', 'usage_data', 'meters', 'companies', 'sites']) {
        const column = sql.raw(table === 'companies' ? 'id' : 'company_id');
        await db.execute(
          sql`update ${sql.raw(`utility.${table}`)} set raw = null where ${column} = ${companyId}::uuid`,
        );
      }
    },
    run: async ({ db }, plot) => {
      await isConfirmedCompany(db, idOf('company', plot));
      await retireUnread(db, idOf('company', plot));
    },
  },
  {
    name: 'the ranges of a meter back off',
    rows: 50,
    run: async ({ db }, plot) => {
      const ranges = pendingOf.owner('intervals', meterOf(plot, 2));
      await postpone(db, ranges, { code: 'LISTING_UNSTABLE', message: 'm' }, { readAt });
    },
  },
  {
    name: 'records that show whether an endpoint exists are looked up',
    rows: 10,
    run: async ({ db }) => {
      await recordsToProbe(db, 'connection', 3);
      await recordsToProbe(db, 'document', 3);
      await recordsToProbe(db, 'documentUsage', 3);
    },
  },
  {
    name: 'the gate for all requests is closed and opened',
    rows: 60,
    run: async ({ db }) => {
      await closeGate(db, serviceScope, { code: 'SERVICE_KEY_REFUSED', message: 'refused' });
      await whyServiceClosed(db);
      await openGates(db, ['SERVICE_KEY_REFUSED']);
    },
  },
  {
    name: 'events that failed are resumed',
    rows: 60,
    run: async ({ db }) => {
      await reviveFailed(db, ['SERVICE_KEY_REFUSED']);
    },
  },
];
