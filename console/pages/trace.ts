import { html } from 'hono/html';
import { type TracedKind, tracedKinds } from '../../contract/names.ts';
import { formatTime } from '../../contract/times.ts';
import { counted, label } from '../../contract/words.ts';
import { type Found, type FoundKind, findById, findByName, foundKinds } from '../../db/read/find.ts';
import { traceRecord } from '../../db/read/trace.ts';
import { factsOf, isPartOf, timelineOf } from '../../operations/trace.ts';
import { type Asking, asked, type MakePage, oneOf } from '../asking.ts';
import type { Page } from '../frame.ts';
import { capital, facts, nothing, rowLink, section, table, text } from '../parts.ts';

const anyOf = new Intl.ListFormat('en', { type: 'disjunction' });

/** What happened to this record? One search box for any id. */
export const tracePage: MakePage = async (asking) => {
  const { deps, query } = asking;
  const kind = oneOf(query, 'kind', tracedKinds);
  const id = asked(query, 'id');
  if (kind !== undefined && id !== undefined) return await story(asking, kind, id);
  const given = asked(query, 'q');
  const byId = given === undefined ? [] : await findById(deps.db, given);
  const found = given === undefined || byId.length > 0 ? byId : await findByName(deps.db, given);
  const [only, ...more] = found;
  if (only !== undefined && more.length === 0 && isTraced(only.kind))
    return await story(asking, only.kind, only.id);
  return {
    title: 'Trace',
    body: html`<h1>Trace</h1>
${
  found.length > 0
    ? table(
        'What has this id, number or name',
        [
          { name: 'What', of: (one) => rowLink(addressOf(one), one.kind) },
          { name: 'Name', of: ({ name }) => text(name) },
          { name: 'Company', of: ({ company }) => text(company) },
          { name: 'Id', of: ({ id }) => html`<small class="id">${text(id)}</small>` },
        ],
        found.map((one, place) => ({ ...one, place })),
        ({ place }) => `found-${place}`,
      )
    : nothing(
        given === undefined ? 'Search an id, a number or a name' : 'Nothing is found',
        `The search knows the id of any ${anyOf.format(foundKinds)}, your own ids of companies, numbers of invoices, accounts and meters, and parts of the names of companies, sites and providers.`,
      )
}`,
  };
};

const isTraced = (kind: FoundKind): kind is TracedKind => (tracedKinds as readonly string[]).includes(kind);

/** A site has no page of its own: it leads to its company. */
function addressOf({ kind, id, companyId }: Found): string {
  if (kind === 'event') return `/events/${encodeURIComponent(id)}`;
  if (kind === 'run') return `/runs/${id}`;
  if (kind === 'company') return `/companies/${id}`;
  if (kind === 'site') return companyId === null ? '/sites' : `/companies/${companyId}`;
  return `/trace?kind=${kind}&id=${encodeURIComponent(id)}`;
}

async function story({ deps, query }: Asking, kind: TracedKind, id: string): Promise<Page> {
  const trace = await traceRecord(deps.db, kind, id);
  const { record, events, rejected } = trace;
  const all = query.get('all') === 'yes';
  const runs = all ? trace.runs : trace.runs.filter((run) => isPartOf(run, trace));
  const left = trace.runs.length - runs.length;
  const exists = record !== null || events.length > 0 || rejected.length > 0;
  return {
    title: `${kind} ${id}`,
    body: html`<h1>${capital(kind)}</h1><p><code>${text(trace.id)}</code></p>
${
  exists
    ? html`<div class="card">${
        record === null
          ? html`<p>Not in the warehouse.</p>`
          : facts(
              factsOf(trace).map(([name, value]) =>
                name === 'companyId'
                  ? (['Company id', html`<a href="/companies/${value}">${value}</a>`] as const)
                  : ([capital(label(name)), text(formatTime(value))] as const),
              ),
            )
      }</div>
${section(
  'What happened',
  html`<ol class="timeline card">${timelineOf({ ...trace, runs }).map(
    ({ at, what, more = [] }) =>
      html`<li><time datetime="${at}">${formatTime(at)}</time><div>${text(what)}${more.map((line) => html`<br><small>${text(line)}</small>`)}</div></li>`,
  )}</ol>${left > 0 && html`<p class="muted small">${counted(left, 'run')} that read it and changed nothing: <a href="/trace?kind=${kind}&id=${encodeURIComponent(id)}&all=yes">show them</a>.</p>`}`,
)}`
    : nothing(
        'Nothing is known about it',
        `No ${kind} with this id is in the warehouse, and no event names it.`,
      )
}`,
  };
}
