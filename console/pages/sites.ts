import { html } from 'hono/html';
import { counted } from '../../contract/words.ts';
import { consoleBounds } from '../../db/read/bounds.ts';
import { countZones, type ListedSite, listSites } from '../../db/sites.ts';
import { badge } from '../../web/badge.ts';
import type { Markup } from '../../web/markup.ts';
import type { MakePage } from '../asking.ts';
import { givenCompany } from '../given.ts';
import { address, nothing, pager, table, text } from '../parts.ts';

/** In which time zone do the days of a site begin, and what else is set for it? */
export const siteList: MakePage = async ({ deps, query }) => {
  const company = await givenCompany(query, 'company', deps.db);
  const companyId = company.value;
  const offset = Number(/^\d{1,6}$/.exec(query.get('after') ?? '')?.[0] ?? 0);
  const limit = consoleBounds.rows;
  const [sites, zones] = await Promise.all([
    company.wrong === undefined ? listSites(deps.db, { companyId }, { limit, offset }) : [],
    countZones(deps.db),
  ]);
  const next =
    sites.length === limit && address('/sites', { company: companyId, after: String(offset + limit) });
  return {
    title: 'Sites',
    section: 'Companies',
    body: html`<p class="crumbs"><a href="/companies">Companies</a></p>
<div class="head"><div><h1>Sites${company.hint !== undefined && ` of ${company.hint}`}</h1><p class="muted">${zonesInWords(zones)}</p></div></div>
${
  company.wrong !== undefined
    ? nothing('This address cannot be used', text(company.wrong))
    : sites.length === 0
      ? nothing('No site', 'The first backfill lists them.')
      : siteTable(sites)
}
${pager(next || undefined, offset === 0 ? undefined : address('/sites', { company: companyId }))}
<p class="muted">To change sites, run <code>metersync export analytics.sites --out sites.csv</code>, edit the file, and run <code>metersync sites --file sites.csv</code>.${zones.proposed > 0 && html` To set all proposed time zones, run <code>metersync sites --accept-proposals</code>.`}</p>`,
  };
};

const zonesInWords = ({ sites, unset }: { readonly sites: number; readonly unset: number }): string =>
  unset === 0
    ? 'Each site has a time zone.'
    : `${counted(unset, 'site')} of ${sites} without a time zone: their days and hours are in UTC.`;

const siteTable = (sites: readonly ListedSite[]): Markup =>
  table(
    'Sites; sites without a time zone come first',
    [
      {
        name: 'Site',
        of: ({ site, company, address: at }) =>
          html`<strong>${text(site ?? 'no name')}</strong><br><small>${text(company)}${at !== null && `, ${text(at)}`}</small>`,
      },
      {
        name: 'Time zone',
        of: (site) =>
          site.time_zone_source === 'default'
            ? html`${badge('uneasy', 'not set')} ${site.proposed_time_zone !== null && html`<small>proposed: ${site.proposed_time_zone}</small>`}`
            : text(site.time_zone),
      },
      { name: 'Emission region', of: ({ emission_region: region }) => text(region ?? '–') },
      {
        name: 'Floor area',
        of: ({ floor_area: area, floor_area_units: units }) =>
          text(area === null ? '–' : `${area} ${units ?? ''}`),
      },
    ],
    sites,
    ({ site_id: id }) => id,
  );
