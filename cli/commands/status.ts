import { requireSchema } from '../../app/prepare.ts';
import { describeBlocked } from '../../app/typed-views.ts';
import {
  openWarehouse,
  type ParkedWork,
  readStatus,
  silenceOperator,
  type WarehouseStatus,
} from '../../app/warehouse.ts';
import { openContext } from '../context.ts';
import { print, printJson } from '../print.ts';
import { table } from '../terminal.ts';

/** `metersync status`: what has been applied, what waits and why. */
export async function status(options: { json?: boolean }): Promise<void> {
  const context = await openContext({ temporal: false, service: false, quiet: true });
  const { settings, stack, log } = context;
  try {
    await requireSchema(settings, stack.databaseUrl, log);
    const warehouse = openWarehouse(settings, stack.databaseUrl, log, 1);
    try {
      const now = await readStatus(warehouse.db, settings);
      if (options.json) printJson(now);
      else print(...describe(now));
    } finally {
      await warehouse.close();
    }
  } finally {
    await context.stop();
  }
}

function describeRuns(name: string, { running, last }: WarehouseStatus['backfills']): string {
  const ended = last === null ? 'none' : `${last.state}, ended ${last.finishedAt}, run ${last.runId}`;
  const why = last === null || last.error === null ? '' : `: ${last.error}`;
  return `${name} running: ${running}; last: ${ended}${why}`;
}

function describe(now: WarehouseStatus): string[] {
  const ago = (seconds: number | null) => (seconds === null ? 'never' : `${Math.round(seconds)} s ago`);
  const lines = [
    ...table(['events', 'count'], Object.entries(now.events)),
    ...table(['live rows', 'count'], Object.entries(now.rows)),
    `last event: ${ago(now.lastEventSecondsAgo)}; oldest pending: ${Math.round(now.oldestPendingSeconds)} s`,
    describeRuns('backfills', now.backfills),
    describeRuns('reconciles', now.reconciles),
  ];
  if (now.rejectedRecords > 0)
    lines.push(`records that Postgres refused: ${now.rejectedRecords}, see metersync.rejected_records`);
  if (now.quarantinedDeletes > 0)
    lines.push(
      `rows that wait for a decision, as too many were gone at once: ${now.quarantinedDeletes} (metersync deletes list)`,
    );
  lines.push(...describeIssues(now.issues), ...now.blockedViews.map(describeBlocked));
  lines.push(...now.parked.flatMap(describeParked));
  if (now.events.missing > 0)
    lines.push(
      `records that the service never showed, or not as new: ${now.events.missing} events, see metersync.events`,
    );
  const { events: short, readings } = now.intervalShortfall;
  if (short > 0)
    lines.push(
      `readings that the service told of and does not show: ${readings}, of ${short} events, see metersync.interval_ledger`,
    );
  if (now.silence.signs.length > 0)
    lines.push(now.silence.signs.join('; '), `  What to do: ${silenceOperator}`);
  const parked = now.parked.map(({ code }) => code);
  for (const { code, events, owners, nextAttemptAt, reason } of now.waiting)
    if (!parked.includes(code))
      lines.push(
        `${events} events of ${owners} companies or meters wait, tried again from ${nextAttemptAt} on: ${reason}`,
      );
  return lines;
}

function describeIssues({ error, warning, info, acknowledged }: WarehouseStatus['issues']): string[] {
  if (error + warning + info + acknowledged === 0) return [];
  const known = acknowledged === 0 ? '' : `; acknowledged: ${acknowledged} more`;
  return [
    `open issues of the data: ${error} errors, ${warning} warnings, ${info} infos${known} (metersync checks list)`,
  ];
}

function describeParked(parked: ParkedWork): string[] {
  const { code, events, owners, backfillParts, since, nextAttemptAt, operator } = parked;
  const what = [
    ...(events > 0 ? [`${events} events of ${owners} companies or meters`] : []),
    ...(backfillParts > 0 ? [`${backfillParts} parts of backfills`] : []),
  ];
  const next = nextAttemptAt === null ? '' : `, tried again at ${nextAttemptAt}`;
  return [
    `parked since ${since}: ${code}: ${what.join(' and ') || 'nothing waits yet'}${next}`,
    `  ${parked.reason}`,
    `  What to do: ${operator}`,
  ];
}
