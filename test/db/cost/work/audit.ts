import { type AuditResource, companyResources } from '../../../../contract/endpoints.ts';
import { compareReadings, compareUsageOfRecords } from '../../../../db/read/compare-parts.ts';
import { comparePage, eventsBehind, refusals } from '../../../../db/read/compare-records.ts';
import {
  liveCompanies,
  ownerlessRows,
  strayRows,
  unlistedCompanies,
  unlistedMeters,
  unlistedRows,
} from '../../../../db/read/extra-rows.ts';
import type { IntervalColumns } from '../../../../db/readings/texts.ts';
import { forgetDigests } from '../../../../db/records/repair.ts';
import { recordResources } from '../../../../db/resources.ts';
import { pageOfRecords } from '../../../support/pages.ts';
import { pageOfReadings } from '../../../support/readings.ts';
import { idOf, meterOf } from '../rows.ts';
import { changedAt, numbers, readAt, type Work } from './work.ts';

const ids: Readonly<Record<Exclude<AuditResource, 'intervals'>, (plot: number) => string[]>> = {
  companies: (plot) => [idOf('company', plot)],
  sites: (plot) => [idOf('company', plot)],
  connections: (plot) => numbers(1, 20).map((n) => idOf('connection', plot, n)),
  meters: (plot) => numbers(1, 5).map((n) => meterOf(plot, n)),
  documents: (plot) => numbers(1, 50).map((n) => idOf('document', plot, n)),
  usageData: (plot) => numbers(1, 100).map((n) => idOf('usage', plot, n)),
};

/** Readings of the service that differ from the readings of the warehouse. */
function otherReadings(): IntervalColumns {
  const startAt = numbers(1, 28).map((day) => `2025-01-${String(day).padStart(2, '0')}T00:00:00Z`);
  const each = <T>(value: T): T[] => startAt.map(() => value);
  return {
    startAt,
    endAt: each(null),
    granularitySeconds: each(3600),
    usage: each('1'),
    usageUnits: each('kWh'),
    quality: each('ACTUAL'),
    updated: each(null),
    id: each(null),
  };
}

export const auditWork: readonly Work[] = [
  ...recordResources.map(
    (resource): Work => ({
      name: `an audit compares ${resource} of a company that differ`,
      rows: 150,
      run: async ({ db }, plot) => {
        const companyId = idOf('company', plot);
        const owner = resource === 'companies' || resource === 'sites' ? null : companyId;
        const page = ids[resource](plot);
        const records = page.map((id) => ({
          id,
          updated: changedAt,
          sites: [{ id: idOf('site', plot) }],
        }));
        await comparePage(db, resource, pageOfRecords(records, { companyId: owner }), page);
        await unlistedRows(db, resource, companyId, []);
        await unlistedRows(db, resource, companyId, page, { since: readAt });
      },
    }),
  ),
  {
    name: 'an audit compares the readings of a meter',
    rows: 200,
    run: async (warehouse, plot) => {
      const { db } = warehouse;
      const [meterId, columns] = [meterOf(plot, 1), otherReadings()];
      const { pages } = await pageOfReadings(warehouse, meterId, columns);
      await compareReadings(db, { meterId, readAt, range: {}, pages });
      await unlistedMeters(db, idOf('company', plot), []);
    },
  },
  {
    name: 'an audit compares the usage in the records of documents of a company',
    rows: 150,
    run: async ({ db }, plot) => {
      const { unequal } = await compareUsageOfRecords(db, idOf('company', plot));
      await forgetDigests(
        db,
        unequal.map(({ documentId }) => documentId),
      );
    },
  },
  {
    name: 'an audit explains what differs',
    rows: 50,
    run: async ({ db }, plot) => {
      const documents = numbers(1, 10).map((n) => idOf('document', plot, n));
      await eventsBehind(db, documents);
      await refusals(
        db,
        documents.map((id) => ({ resource: 'documents', id })),
      );
    },
  },
  {
    name: 'an audit looks for companies that the list does not contain',
    rows: 20,
    asksForAll: 'It is about all companies.',
    run: async ({ db }, plot) => {
      await liveCompanies(db);
      await unlistedCompanies(db, [idOf('company', plot)]);
    },
  },
  {
    name: 'an audit looks for rows of companies that it does not read',
    rows: 20,
    asksForAll: 'It is about all owners of rows.',
    run: async ({ db }) => {
      const all = await liveCompanies(db);
      for (const resource of companyResources) {
        await ownerlessRows(db, resource);
        await strayRows(db, resource, all);
      }
    },
  },
];
