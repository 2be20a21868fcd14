import { readFileSync } from 'node:fs';
import { unreadable } from '../../app/settings/secret-files.ts';
import { counted } from '../../contract/words.ts';
import {
  acceptProposedZones,
  type ListedSite,
  listSites,
  setSites,
  UnusableSiteValues,
} from '../../db/sites.ts';
import { Refused, recorded } from '../../operations/recorded.ts';
import { readSiteValues } from '../../operations/sites.ts';
import { asOperation } from '../as-operation.ts';
import { type CompanyOptions, heldCompanyOf } from '../company.ts';
import { UsageError } from '../errors.ts';
import { print, printJson } from '../print.ts';
import { paragraph } from '../terminal.ts';
import { withWarehouse } from '../warehouse.ts';

export interface SitesOptions extends CompanyOptions {
  readonly file?: string;
  readonly acceptProposals?: boolean;
  readonly json?: boolean;
}

/** `metersync sites`: lists sites with the values set for them, or sets values from a file or addresses. */
export async function sites(options: SitesOptions): Promise<void> {
  const { file, acceptProposals = false } = options;
  const isNarrowed = options.company !== undefined || options.externalId !== undefined;
  if (file !== undefined && (acceptProposals || isNarrowed))
    throw new UsageError(
      '--file names the sites itself: leave out --accept-proposals, --company and --external-id',
    );
  const given = file === undefined ? undefined : valuesIn(file);
  await withWarehouse({ temporal: false }, async ({ db, context }) => {
    const companyId = await heldCompanyOf(db, options);
    if (given === undefined && !acceptProposals) {
      const listed = await listSites(db, { companyId });
      if (options.json) printJson({ sites: listed });
      else print(...describe(listed));
      return;
    }
    const inWords = (changed: number) => `${counted(changed, 'site')} changed`;
    const changed = await recorded(
      db,
      asOperation(context.settings, 'sites set', { company: companyId, file }),
      async () => {
        if (given === undefined) return await acceptProposedZones(db, companyId);
        return await setSites(db, given).catch((error) => {
          throw error instanceof UnusableSiteValues ? new Refused(error.message) : error;
        });
      },
      inWords,
    );
    if (options.json) printJson({ changed });
    else print(`${inWords(changed)}.`);
  });
}

function valuesIn(file: string) {
  let csv: string;
  try {
    csv = readFileSync(file, 'utf8');
  } catch (error) {
    throw new UsageError(`${file} ${unreadable(error).problem}`);
  }
  try {
    return readSiteValues(csv);
  } catch (error) {
    throw new UsageError(`${file}: ${(error as Error).message}`);
  }
}

function describe(listed: readonly ListedSite[]): string[] {
  if (listed.length === 0) return ['There are no sites yet: run metersync backfill all.'];
  const unset = listed.filter(({ time_zone_source: source }) => source === 'default');
  const proposed = unset.filter(({ proposed_time_zone: zone }) => zone !== null);
  return [
    ...listed.flatMap((site) =>
      paragraph('', `${site.company ?? site.company_id}, ${site.site ?? site.site_id}: ${settingsOf(site)}`),
    ),
    '',
    unset.length === 0
      ? 'Each site has a time zone.'
      : `${counted(unset.length, 'site')} without a time zone: their days and hours are in UTC. To set time zones, run metersync export analytics.sites --out sites.csv, edit the file, and run metersync sites --file sites.csv.`,
    ...(proposed.length === 0
      ? []
      : [
          `For ${counted(proposed.length, 'site')}, the address proposes a time zone: metersync sites --accept-proposals sets it.`,
        ]),
  ];
}

function settingsOf(site: ListedSite): string {
  const { time_zone_source: source, proposed_time_zone: proposed, floor_area: area } = site;
  const zone = {
    site: site.time_zone,
    company: `${site.time_zone}, as set for the company`,
    default: `no time zone${proposed === null ? '' : `, ${proposed} proposed`}`,
  }[source];
  const region = site.emission_region === null ? [] : [`emission region ${site.emission_region}`];
  return [zone, ...region, ...(area === null ? [] : [`${area} ${site.floor_area_units ?? ''}`.trim()])].join(
    '; ',
  );
}
