import { html } from 'hono/html';
import { canonicalUuid } from '../contract/ids.ts';
import { counted } from '../contract/words.ts';
import {
  acceptProposedZones,
  countZones,
  type ListedSite,
  listSites,
  type SiteAttribute,
  setSites,
  siteAttributes,
  UnusableSiteValues,
} from '../db/sites.ts';
import { Refused } from '../operations/recorded.ts';
import { type Asking, asked } from './asking.ts';
import { text } from './parts.ts';
import type { Question } from './question.ts';

/** Sets what the service does not send about a site, or the proposed time zones of all sites without one. */
export async function askSites({ deps, query }: Asking): Promise<Question> {
  if (query.get('proposed') === 'yes') {
    const { proposed } = await countZones(deps.db);
    if (proposed === 0) throw new Refused('no address proposes a time zone');
    return {
      title: 'Set the proposed time zones',
      says: `${counted(proposed, 'site')} without a time zone ${proposed === 1 ? 'gets' : 'get'} the time zone of the state or province in the address. Days and hours of readings then follow that zone.`,
      button: `Set ${counted(proposed, 'proposed zone')}`,
      act: async () => `${counted(await acceptProposedZones(deps.writer), 'site')} changed`,
    };
  }
  const id = canonicalUuid(asked(query, 'id') ?? '');
  const [site] = id === undefined ? [] : await listSites(deps.db, { siteIds: [id] });
  if (site === undefined) throw new Refused('there is no such site');
  return {
    title: `Set ${text(site.site ?? site.site_id)}`,
    says: 'The service does not send these values. The time zone decides when the days and hours of readings begin.',
    fields: html`${siteAttributes.map((name) => input(name, site))}`,
    button: 'Set',
    act: async (form) => {
      const values = Object.fromEntries(siteAttributes.map((name) => [name, asked(form, name) ?? null]));
      const changed = await setSites(deps.writer, [{ siteId: site.site_id, values }]).catch((error) => {
        throw error instanceof UnusableSiteValues ? new Refused(error.message) : error;
      });
      return changed === 0 ? 'nothing changed' : 'set';
    },
  };
}

const labels: Readonly<Record<SiteAttribute, string>> = {
  time_zone: 'Time zone, for example America/Chicago',
  emission_region: 'Emission region',
  floor_area: 'Floor area',
  floor_area_units: 'Unit of the floor area, for example sq ft',
};

function input(name: SiteAttribute, site: ListedSite) {
  const isUnset = name === 'time_zone' && site.time_zone_source === 'default';
  const value = isUnset ? (site.proposed_time_zone ?? '') : (site[name] ?? '');
  return html`<label for="${name}">${labels[name]}</label><input id="${name}" name="${name}" value="${value}" maxlength="100" autocomplete="off" spellcheck="false">`;
}
