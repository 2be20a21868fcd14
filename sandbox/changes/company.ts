import type { ChangeOf } from './schema.ts';
import { type ChangeContext, unused } from './working-set.ts';

/** Creates a company with one site, without an event. Returns its id. */
export function createCompany({ set, newId }: ChangeContext, change: ChangeOf<'createCompany'>): string {
  const id = unused(set.companies, 'company', change.id ?? newId());
  const company = {
    externalId: change.externalId ?? `C-${id.slice(0, 8)}`,
    id,
    name: change.name ?? `Company ${id.slice(0, 8)}`,
    publicId: newId(),
  };
  const site = { id: newId(), companyId: id, name: 'Head office' };
  set.companies.set(id, company);
  set.sites.set(site.id, site);
  set.newCompanies.push({
    organizationId: change.organizationId,
    company,
    facts: {
      users: [],
      dataCollectionStartDate: '2025-01-01',
      isDemandEnabled: false,
      isImpliedMeteringEnabled: false,
      impliedMeteringFraction: '0.0000',
      isBasicIdentifierMappingEnabled: true,
      isLowAccuracyModeEnabled: false,
    },
  });
  set.newSites.push({
    ...site,
    timeZone: 'America/New_York',
    facts: {
      dataCollectionStopDate: null,
      externalId: null,
      address: '1 Main St, New York, NY 10001',
      path: ['US', 'NY', 'New York'],
      occupancyPercent: null,
    },
  });
  return id;
}
