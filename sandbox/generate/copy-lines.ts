import { copyLine } from '../database/copy.ts';
import { documentColumns, documentValues, usageColumns, usageValues } from '../records/document-rows.ts';
import { toMembers } from '../records/members.ts';
import type { MeterInPlace } from '../records/meter.ts';
import type { CompanyData } from './rows.ts';

/** For each table, a function that turns a batch of companies into lines for COPY. */
export type TableLines = typeof companyLines;

export const companyColumns = {
  companies: ['organization_id', 'id', 'external_id', 'public_id', 'name', 'members'],
  sites: ['id', 'company_id', 'name', 'time_zone', 'members'],
  connections: ['id', 'company_id', 'created', 'updated', 'status', 'members', 'secrets'],
  meters: [
    'number',
    'id',
    'company_id',
    'site_id',
    'connection_id',
    'account_id',
    'account_number',
    'datasource_type',
    'members',
  ],
  documents: documentColumns,
  usage_data: usageColumns,
} as const;

export const companyLines = {
  *companies(batch: readonly CompanyData[]) {
    for (const { company: row } of batch) {
      const { id, externalId, publicId, name } = row.company;
      yield copyLine([row.organizationId, id, externalId, publicId, name, toMembers(row.facts)]);
    }
  },
  *sites(batch: readonly CompanyData[]) {
    for (const site of batch.flatMap((data) => data.sites)) {
      yield copyLine([site.id, site.companyId, site.name, site.timeZone, toMembers(site.facts)]);
    }
  },
  *connections(batch: readonly CompanyData[]) {
    for (const row of batch.flatMap((data) => data.connections)) {
      const { facts } = row;
      const secrets = JSON.stringify(row.secrets);
      const members = toMembers(facts);
      yield copyLine([row.id, facts.company.id, row.created, row.updated, facts.status, members, secrets]);
    }
  },
  *meters(batch: readonly CompanyData[]) {
    for (const meter of batch.flatMap((data) => data.meters)) {
      yield copyLine([
        meter.number,
        meter.id,
        meter.companyId,
        meter.site.id,
        meter.connectionId,
        meter.accountId,
        meter.accountNumber,
        meter.facts.datasourceType,
        toMembers(meter.facts),
      ]);
    }
  },
  *documents(batch: readonly CompanyData[]) {
    for (const data of batch) {
      const meters = byId(data.meters);
      for (const document of data.documents) yield copyLine(documentValues(document, meters));
    }
  },
  *usage_data(batch: readonly CompanyData[]) {
    for (const data of batch) {
      const meters = byId(data.meters);
      for (const document of data.documents) {
        for (const values of usageValues(document, meters)) yield copyLine(values);
      }
    }
  },
};

const byId = (meters: readonly MeterInPlace[]): ReadonlyMap<string, MeterInPlace> =>
  new Map(meters.map((meter) => [meter.id, meter]));
