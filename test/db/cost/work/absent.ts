import { sql } from 'drizzle-orm';
import { countMissed } from '../../../../db/backfill/missed.ts';
import { clearListed, reconciledSince, retireListed } from '../../../../db/backfill/reconcile.ts';
import type { Listing } from '../../../../db/deletes/absence.ts';
import {
  clearQuarantine,
  countAbsent,
  countTombstoned,
  retireAbsent,
} from '../../../../db/deletes/absent.ts';
import {
  approveDeletes,
  readDeletes,
  rejectDeletes,
  settleHeld,
  undoDeletes,
} from '../../../../db/deletes/decide.ts';
import { goneCompanies, livingOf, sitesInDoubt } from '../../../../db/deletes/gone-companies.ts';
import { forgetListed } from '../../../../db/records/also-listed.ts';
import { clearVersions } from '../../../../db/records/repair.ts';
import { isListedByCompany, type RecordResource, recordResources } from '../../../../db/resources.ts';
import { idOf, meterOf } from '../rows.ts';
import { changedAt, numbers, readAt, readLater, type Work } from './work.ts';

const runOf = (plot: number): string => idOf('run', plot, 1_000);
const ofCompany = (resource: RecordResource, plot: number): Listing => ({
  resource,
  companyId: idOf('company', plot),
});
const none = { ids: ['another'], beganAt: readAt };
const any = { rows: 1_000, percent: 100 };
const nothing = { rows: 0, percent: 0 };
const documents = (plot: number): string[] => numbers(1, 50).map((n) => idOf('document', plot, n));

const listings: readonly RecordResource[] = recordResources.filter((one) => one !== 'companies');

/** Changes the documents of a plot as a pass does that reads them in a new version. */
const newVersions = ({ db }: Parameters<Work['run']>[0], plot: number) =>
  db.execute(sql`
    update utility.documents set
      raw = raw - 'usageData' || ${JSON.stringify({ updated: changedAt })}::jsonb,
      synced_at = ${changedAt}
    where company_id = ${idOf('company', plot)}::uuid`);

function companiesOfTheList(): Work {
  let others: string[] = [];
  return {
    name: 'companies that their list no longer contains',
    rows: 50,
    asksForAll: 'It is about the list of companies, which is all of them.',
    prepare: async ({ db }, plot) => {
      const { rows } = await db.execute<{ id: string }>(
        sql`select id from utility.companies where id <> ${idOf('company', plot)}::uuid`,
      );
      others = rows.map(({ id }) => id);
    },
    run: async ({ db }) => {
      await countAbsent(db, { resource: 'companies', companyId: null }, { ids: others, beganAt: readAt });
      await goneCompanies(db, others);
    },
  };
}

export const absent: readonly Work[] = [
  ...listings.map(
    (resource): Work => ({
      name: `${resource} of a company that a listing no longer contains`,
      rows: 150,
      run: async ({ db }, plot) => {
        const listing = ofCompany(resource, plot);
        await countAbsent(db, listing, none);
        const ofOwner = { resource, companyId: idOf('company', plot) };
        if (isListedByCompany(resource))
          await forgetListed(db, ofOwner, { ids: ['another'], beganAt: readAt });
        await retireAbsent(db, runOf(plot), listing, none, any);
        await countTombstoned(db, runOf(plot), listing);
        await countMissed(db, runOf(plot), listing);
      },
    }),
  ),
  {
    name: 'documents of a company beyond the cap, and the decisions about them',
    rows: 150,
    run: async ({ db }, plot) => {
      const listing = ofCompany('documents', plot);
      await retireAbsent(db, runOf(plot), listing, none, nothing);
      await readDeletes(db, { all: false });
      await rejectDeletes(db, runOf(plot));
      await clearQuarantine(db, listing, readAt);
      await retireAbsent(db, runOf(plot + 100_000), listing, none, nothing);
      await approveDeletes(db, runOf(plot + 100_000));
      await undoDeletes(db, runOf(plot + 100_000));
      await countAbsent(db, listing, { ids: documents(plot), beganAt: readAt });
    },
  },
  {
    name: 'usage is held back after a pass read a new version of its documents',
    rows: 150,
    prepare: newVersions,
    run: async ({ db }, plot) => {
      const listing = ofCompany('usageData', plot);
      await retireAbsent(db, runOf(plot), listing, none, nothing);
      await settleHeld(db);
    },
  },
  {
    name: 'usage that was held back is explained by a new version of its documents',
    // Each row is looked up with its document, its events and its notes.
    rows: 400,
    prepare: async (warehouse, plot) => {
      await retireAbsent(warehouse.db, runOf(plot), ofCompany('usageData', plot), none, nothing);
      await newVersions(warehouse, plot);
    },
    run: async ({ db }) => {
      await readDeletes(db, { all: false });
      await settleHeld(db);
    },
  },
  companiesOfTheList(),
  {
    name: 'the live rows of companies that are gone',
    rows: 175,
    prepare: ({ db }, plot) =>
      db.execute(sql`update utility.documents set deleted_at = now(), deleted_reason = 'absent'
        where company_id = ${idOf('company', plot)}::uuid`),
    run: ({ db }, plot) => livingOf(db, [idOf('company', plot)]),
  },
  {
    name: 'sites that the record of a company no longer names',
    rows: 10,
    asksForAll: 'It follows a pass over the list of companies, which has read each of them.',
    run: async ({ db }, plot) => {
      await sitesInDoubt(db, [idOf('company', plot)], readLater);
    },
  },
  {
    name: 'a reconcile finds some documents deleted and others not',
    rows: 150,
    run: async ({ db }, plot) => {
      await reconciledSince(db, 2);
      const listed = documents(plot)
        .slice(0, 40)
        .map((id) => ({ id, updated: readAt }));
      const companyId = idOf('company', plot);
      await retireListed(db, runOf(plot), companyId, listed, readAt, any);
      await clearListed(db, companyId, documents(plot));
    },
  },
  {
    name: 'a reconcile finds more documents deleted than the cap allows',
    rows: 150,
    run: async ({ db }, plot) => {
      const listed = documents(plot)
        .slice(0, 40)
        .map((id) => ({ id, updated: readAt }));
      await retireListed(db, runOf(plot), idOf('company', plot), listed, readAt, nothing);
      await clearListed(db, idOf('company', plot), documents(plot));
    },
  },
  {
    name: 'versions of rows that an audit repairs are cleared',
    rows: 75,
    run: async ({ db }, plot) => {
      await clearVersions(db, 'documents', documents(plot), readAt);
      await clearVersions(
        db,
        'meters',
        numbers(1, 5).map((n) => meterOf(plot, n)),
        readAt,
      );
      await clearVersions(
        db,
        'connections',
        numbers(1, 20).map((n) => idOf('connection', plot, n)),
        readAt,
      );
    },
  },
];
