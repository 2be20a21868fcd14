import { html } from 'hono/html';
import { readVersion } from '../../app/process/version.ts';
import { withClient } from '../../app/temporal/client.ts';
import { readSchedule, type ScheduleState } from '../../app/temporal/schedules.ts';
import { runKinds } from '../../contract/names.ts';
import { describeFit, fitOf } from '../../contract/schema-versions.ts';
import { readServer } from '../../db/connection/session.ts';
import { badge } from '../../web/parts.ts';
import { type Asking, type MakePage, mayAct } from '../asking.ts';
import { actButton, ago, type Content, facts, nothing, section, table, text } from '../parts.ts';

/** Is everything that metersync depends on healthy? */
export const systemPage: MakePage = async (asking) => {
  const [versions, schedules] = await Promise.all([readVersions(asking), schedulesOf(asking)]);
  return {
    title: 'System',
    section: 'System',
    body: html`<div class="head"><div><h1>System</h1><p class="muted">The servers and versions that metersync uses. <code>metersync doctor</code> checks more.</p></div></div>
${section('Versions', html`<div class="card">${facts(versions)}</div>`)}
${section('Schedules', schedules)}`,
  };
};

async function readVersions({ deps, health }: Asking): Promise<(readonly [string, Content])[]> {
  const { temporal, warehouse, schema: versions } = health;
  const postgres = 'away' in warehouse ? warehouse.away : (await readServer(deps.db)).version;
  const schema =
    versions === null
      ? 'unknown'
      : fitOf(versions) === 'same'
        ? 'the version that this metersync needs'
        : describeFit(versions).saw;
  return [
    ['metersync', readVersion()],
    ['Node', process.version],
    ['Postgres', text(postgres)],
    ['Schema', schema],
    [
      'Temporal',
      'away' in temporal
        ? text(temporal.away)
        : deps.temporalUi === undefined
          ? 'reachable'
          : html`<a href="${deps.temporalUi}">its web page</a>`,
    ],
  ];
}

async function schedulesOf(asking: Asking): Promise<Content> {
  const { deps, now } = asking;
  try {
    const schedules = await withClient(deps.temporal, (client) =>
      Promise.all(runKinds.map((kind) => readSchedule(client, kind))),
    );
    return table(
      'Schedules',
      [
        { name: 'Schedule', of: ({ name }) => html`<b>${name}</b>` },
        {
          name: 'State',
          of: ({ state, reason }) =>
            html`${badge(state === 'active' ? 'good' : 'uneasy', state)} <small>${text(reason)}</small>`,
        },
        { name: 'When', of: ({ times }) => times ?? '–' },
        { name: 'Next', of: ({ next }) => ago(next[0], now) },
        {
          name: 'Last',
          of: ({ last: [latest] }) => latest && html`${ago(latest.scheduledAt, now)}, ${latest.state}`,
        },
        { name: 'Missed', end: true, of: ({ missed }) => missed },
        { name: '', end: true, of: (schedule) => mayAct(asking) && actions(schedule) },
      ],
      schedules,
      ({ name }) => name,
    );
  } catch (error) {
    return nothing('Unknown while Temporal cannot be reached', text((error as Error).message));
  }
}

const actions = ({ name, state }: ScheduleState): Content =>
  state === 'active'
    ? actButton(`/act/schedule-pause?kind=${name}&back=/system`, 'Pause')
    : state === 'paused'
      ? actButton(`/act/schedule-resume?kind=${name}&back=/system`, 'Resume')
      : '';
