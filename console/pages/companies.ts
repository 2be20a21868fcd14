import { html } from 'hono/html';
import { canonicalUuid } from '../../contract/values.ts';
import { counted, nameInWords } from '../../contract/words.ts';
import { consoleBounds } from '../../db/read/bounds.ts';
import {
  type ListedCompany,
  listCompanies,
  listConnections,
  rangesWaiting,
  readCompany,
  readResources,
} from '../../db/read/companies.ts';
import { readCompanyMonths } from '../../db/read/company-months.ts';
import { listEvents } from '../../db/read/events.ts';
import { listDataIssues } from '../../db/read/issues.ts';
import { countZones, type ListedSite, listSites } from '../../db/sites.ts';
import type { Verdict } from '../../health/verdict.ts';
import { badge, copyable, type Markup } from '../../web/parts.ts';
import { asked, givenCompany, type MakePage, mayAct } from '../asking.ts';
import { billCalendar, monthCharts } from '../charts.ts';
import {
  actButton,
  address,
  ago,
  count,
  facts,
  inConsole,
  inFull,
  nothing,
  pager,
  rowLink,
  section,
  stateBadge,
  table,
  text,
} from '../parts.ts';
import { eventTable } from './events.ts';
import { issueTable } from './issues.ts';

/** Which customer is behind? */
export const companyList: MakePage = async ({ deps, verdict, query, now }) => {
  const id = canonicalUuid(asked(query, 'after') ?? '');
  const after = id === undefined ? undefined : { id, name: query.get('name') ?? '' };
  const rows = await listCompanies(deps.db, { limit: consoleBounds.rows, after });
  const last = rows.length === consoleBounds.rows ? rows.at(-1) : undefined;
  const next = last && address('/companies', { after: last.id, name: last.name ?? '' });
  return {
    title: 'Companies',
    section: 'Companies',
    live: after === undefined,
    body: html`<div class="head"><div><h1>Companies</h1><p class="muted">All companies by name, with what waits for them.</p></div><a class="button outline small" href="/sites">Sites and time zones</a></div>
${
  rows.length === 0
    ? nothing('No company yet', 'The first backfill lists them: “Backfill” on the page “Runs” starts it.')
    : table(
        'Companies by name',
        [
          {
            name: 'Company',
            of: ({ id, name }) =>
              html`${rowLink(`/companies/${id}`, text(name ?? 'no name'))}<small class="id">${id}</small>`,
          },
          { name: 'State', of: (row) => stateOf(row, verdict) },
          {
            name: 'Waiting',
            of: ({ waiting, waitingSince }) =>
              waiting === 0 ? 'nothing' : html`${counted(waiting, 'event')}, ${ago(waitingSince, now)}`,
          },
          { name: 'Issues', of: ({ issues }) => count(issues) },
          { name: 'Last read', end: true, of: ({ readUntil }) => ago(readUntil, now) },
        ],
        rows,
        (row) => row.id,
      )
}${pager(next, after && '/companies')}`,
  };
};

/** The state of a company. It is not called in sync while the verdict on the whole deployment is another. */
function stateOf(company: ListedCompany, { word }: Verdict): Markup {
  const { unwell, waiting, connections, idleConnections, readUntil, deletedAt } = company;
  const isRead = unwell === 0 && waiting === 0 && readUntil !== null;
  const isFine = isRead && connections === 0 && idleConnections === 0;
  return html`<span class="badges">${deletedAt !== null && badge('plain', 'deleted')}
${unwell > 0 && badge('uneasy', `${counted(unwell, 'resource')} not complete`)}
${connections > 0 && badge('uneasy', `${counted(connections, 'connection')} ${connections === 1 ? 'needs' : 'need'} a person`)}
${idleConnections > 0 && badge('uneasy', `${counted(idleConnections, 'connection')} ${idleConnections === 1 ? 'collects' : 'collect'} nothing`)}
${unwell === 0 && readUntil === null && badge('plain', 'never read completely')}
${unwell === 0 && waiting > 0 && badge('busy', 'catching up')}
${isFine && (word === 'In sync' ? badge('good', 'in sync') : badge('plain', 'read completely'))}</span>`;
}

/** Why is this company behind? */
export const companyPage: MakePage = async (asking) => {
  const { deps, params, now } = asking;
  const { db } = deps;
  const id = canonicalUuid(params.id ?? '');
  const company = id === undefined ? undefined : await readCompany(db, id);
  if (company === undefined || id === undefined) return undefined;
  const [resources, ranges, connections, { events }, issues, months] = await Promise.all([
    readResources(db, id),
    rangesWaiting(db, id),
    listConnections(db, id),
    listEvents(db, { queueOf: id, outcome: 'pending' }, { limit: 10 }),
    listDataIssues(db, { companyId: id, unacknowledged: true }, 10),
    readCompanyMonths(db, id, new Date(now).toISOString()),
  ]);
  const back = `/companies/${id}`;
  return {
    title: company.name ?? id,
    section: 'Companies',
    live: true,
    body: html`<p class="crumbs"><a href="/companies">Companies</a></p>
<div class="head"><h1>${text(company.name ?? 'A company without a name')}</h1>${mayAct(asking) && actButton(`/act/backfill?company=${id}&back=${back}`, 'Backfill')}</div>
<div class="card"><p>${stateOf(company, asking.verdict)}</p>${facts([
      ['Id', copyable(id, 'company id')],
      ['Your id', company.externalId && text(company.externalId)],
      ['Deleted', company.deletedAt && inFull(company.deletedAt, now)],
      ['Waiting', `${counted(company.waiting, 'event')}, ${counted(ranges, 'range')} of readings`],
      ['Compare with the service', html`<code>metersync audit --company ${id}</code>`],
    ])}</div>
${section(
  'Reads',
  resources.length === 0
    ? nothing('Never read', 'No run has read this company yet.')
    : table(
        'The last read of each resource',
        [
          { name: 'Resource', of: ({ resource, runId }) => rowLink(`/runs/${runId}`, nameInWords(resource)) },
          {
            name: 'State',
            of: ({ state, error }) =>
              html`${stateBadge(state)} <small>${text(inConsole(error ?? '').slice(0, 200))}</small>`,
          },
          { name: 'Records', end: true, of: ({ records }) => (records === null ? '–' : count(records)) },
          { name: 'Missed', end: true, of: ({ missed }) => count(missed) },
          { name: 'Drift', end: true, of: ({ drift }) => count(drift) },
          { name: 'Read', end: true, of: ({ finishedAt, startedAt }) => ago(finishedAt ?? startedAt, now) },
        ],
        resources,
        ({ resource }) => resource,
      ),
)}
${section(
  'Connections',
  connections.length === 0
    ? html`<p class="muted">None.</p>`
    : table(
        'Connections; connections that need a person come first',
        [
          {
            name: 'Provider',
            of: ({ id: connection, provider }) =>
              rowLink(`/trace?kind=connection&id=${connection}`, text(provider ?? connection)),
          },
          {
            name: 'Status',
            of: ({ status, statusClass }) =>
              badge(
                statusClass === 'healthy' ? 'good' : statusClass === 'waiting' ? 'busy' : 'uneasy',
                text(status ?? 'none'),
              ),
          },
          { name: 'What to do', of: ({ whatToDo }) => text(whatToDo) },
          { name: 'Since', end: true, of: ({ since }) => ago(since, now) },
        ],
        connections,
        (row) => row.id,
      ),
)}
${months.calendar.sites.length > 0 && section('Bills by month', billCalendar(months))}
${months.months.length > 0 && section('Cost and usage by month', monthCharts(months))}
${issues.length > 0 && section('Open issues', issueTable(issues, now), html`<a href="/issues?company=${id}">All</a>`)}
${events.length > 0 && section('Events that wait', await eventTable(db, events, now), html`<a href="/events?company=${id}">All events</a>`)}`,
  };
};

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
