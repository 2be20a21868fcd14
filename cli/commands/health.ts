import { randomUUID } from 'node:crypto';
import { secretsOf } from '../../app/receiver-part.ts';
import { openToAsk } from '../../app/warehouse.ts';
import { limits } from '../../contract/limits.ts';
import { doctorPolicy, serverWaits } from '../../contract/retry-policy.ts';
import { formatSeconds, formatTime, timeAgo } from '../../contract/times.ts';
import { capitalized, counted, countInWords, nameInWords } from '../../contract/words.ts';
import {
  type ParkedStatus,
  readStatus,
  readStatusAbout,
  type WarehouseStatus,
} from '../../db/read/status.ts';
import { opensAlarms } from '../../health/alarms.ts';
import { type AlarmName, alarmTypes } from '../../health/findings.ts';
import type { Health, TemporalHealth } from '../../health/measured.ts';
import {
  acknowledgedInWords,
  type Finding,
  headline,
  needsNobody,
  type Verdict,
  verdictOf,
  verdictStatus,
} from '../../health/verdict.ts';
import type { Check } from '../../operations/doctor/check.ts';
import { examine } from '../../operations/doctor/doctor.ts';
import { healthOf } from '../../operations/health.ts';
import { withContext } from '../context.ts';
import { answer } from '../output.ts';
import { paragraph, table } from '../terminal.ts';

/** `metersync status`: prints a verdict, each problem with its remedy, what was applied and what waits. */
export async function status(options: {
  json?: boolean;
  exitCode?: boolean;
  exact?: boolean;
}): Promise<void> {
  const need = { temporal: 'if running', service: false, quiet: true, existing: true } as const;
  await withContext(need, async ({ settings, stack, log }) => {
    const { databaseUrl } = stack;
    const { db, close } = openToAsk(settings, databaseUrl, log, 2);
    try {
      const temporal = stack.hasTemporal ? stack.temporal : undefined;
      const { answerMs } = serverWaits;
      const health = await healthOf({ settings, databaseUrl, temporal, answerMs, again: true })(db);
      const verdict = verdictOf(health);
      const now =
        'away' in health.warehouse
          ? undefined
          : options.exact
            ? await readStatus(db)
            : await readStatusAbout(db, health.warehouse);
      answer(options, { verdict, ...now }, () => describeStatus(health, now, options.exact));
      if (options.exitCode) process.exitCode = verdictStatus[verdict.word];
      else if (now === undefined) process.exitCode = 1;
    } finally {
      await close();
    }
  });
}

/** `metersync doctor`: prints a verdict and its checks; status 1 unless all is in sync or catching up. */
export async function doctor(options: { json?: boolean }): Promise<void> {
  const need = { temporal: 'if running', service: 'if known', quiet: true, existing: true } as const;
  await withContext(need, async ({ settings, stack, service, insecure, log }) => {
    const { checks, verdict } = await examine({
      settings,
      service,
      log,
      databaseUrl: stack.databaseUrl,
      insecure,
      temporal: stack.hasTemporal ? stack.temporal : undefined,
      standIn: settings.service.url === undefined,
      secrets: () => secretsOf(settings.webhooks, log),
      now: Date.now,
      probeId: `metersync-probe-${randomUUID()}`,
      probeArrivesWithinMs: doctorPolicy.probeArrivesMs,
    });
    const ok = verdictStatus[verdict.word] === 0;
    const says = headline(verdict);
    answer(options, { ok, verdict: { word: verdict.word, says }, checks }, () => [
      says,
      ...describeChecks(checks),
    ]);
    if (!ok) process.exitCode = 1;
  });
}

/** Describes the health of a deployment, and what is in its warehouse, if it can be read. */
export function describeStatus(health: Health, now: WarehouseStatus | undefined, exact = false): string[] {
  return [
    ...describeVerdict(verdictOf(health), health),
    ...('away' in health.temporal ? [] : describeTemporal(health.temporal)),
    ...(now === undefined ? [] : ['', ...describeNow(now, exact)]),
  ];
}

/** Describes a verdict on one line. Then each finding, with what to do, and since when its alarm is open. */
function describeVerdict(verdict: Verdict, health: Health): string[] {
  return [
    headline(verdict),
    ...verdict.findings.flatMap((finding) => {
      const { name, saw, todo, open, alarm, key, acknowledged } = finding;
      return [
        ...paragraph('  ', `${wordOf(finding)}: ${name}: ${saw}`),
        ...paragraph('    ', `What to do: ${todo}`),
        ...(alarm === null || needsNobody(finding)
          ? []
          : paragraph(
              '    ',
              `Alarm ${[alarm, ...(key === '' ? [] : [key])].join(' ')}: ${openInWords(alarm, open, health)}`,
            )),
        ...(acknowledged === null ? [] : paragraph('    ', capitalized(acknowledgedInWords(acknowledged)))),
      ];
    }),
  ];
}

const wordOf = ({ word, acknowledged }: Finding): string =>
  acknowledged !== null ? 'Known' : word === 'In sync' ? 'Note' : word;

function openInWords(alarm: AlarmName, open: Finding['open'], health: Health): string {
  const { promql, forMinutes } = alarmTypes[alarm];
  if (open === null && !opensAlarms(alarm, health))
    return `no worker can open it${promql === undefined ? '' : ', only the rules for Prometheus'}`;
  if (open === null) return `opens after ${formatSeconds(60 * Math.max(1, forMinutes))}`;
  const notified = open.notifiedAt === null ? 'nobody was notified' : `notified ${timeAgo(open.notifiedAt)}`;
  return `open since ${timeAgo(open.since)}; ${notified}`;
}

/** Describes the workers and the schedules if nothing is wrong with them. */
function describeTemporal({ idle, absent, schedules }: TemporalHealth): string[] {
  return [
    ...(idle.length === 0 && absent === null ? ['workers: running (events, backfills, checks, alarms)'] : []),
    ...schedules
      .filter(({ state }) => state !== 'paused')
      .map(
        ({ name, state, next }) =>
          `schedule ${name}: ${state === 'absent' ? 'does not exist' : next === null ? 'active' : `next run ${formatTime(next)}`}`,
      ),
  ].map((line) => `  ${line}`);
}

function describeRuns(name: string, { running, last }: WarehouseStatus['backfills']): string {
  const ended =
    last === null ? 'none' : `${last.state}, ended ${timeAgo(last.finishedAt)}, run ${last.runId}`;
  return `${name} running: ${running}; last: ${ended}`;
}

function describeNow(now: WarehouseStatus, exact: boolean): string[] {
  const isMore = (count: number) => !exact && count > limits.countMax;
  const inWords = (count: number) => (isMore(count) ? countInWords(count) : count);
  const ago = (seconds: number | null) => (seconds === null ? 'never' : `${formatSeconds(seconds)} ago`);
  const rows = Object.entries(now.rows).map(([name, count]) => [nameInWords(name), inWords(count)]);
  const lines = [
    ...table(['events', 'count'], Object.entries(now.events)),
    ...table(['live rows', 'count'], rows),
    ...(Object.values(now.rows).some(isMore)
      ? [`${countInWords(limits.countMax + 1)} means that there are more: --exact counts them`]
      : []),
    `last event: ${ago(now.lastEventSecondsAgo)}; oldest pending: ${now.events.pending === 0 ? 'none' : ago(now.oldestPendingSeconds)}`,
    describeRuns('backfills', now.backfills),
    describeRuns('reconciles', now.reconciles),
  ];
  if (now.keptDeletes > 0)
    lines.push(
      `rows that are kept although the service no longer has them: ${inWords(now.keptDeletes)} (metersync deletes list --all)`,
    );
  if (now.unreadableValues > 0)
    lines.push(
      `values that could not be read: ${inWords(now.unreadableValues)}; their columns are empty, or have U+FFFD for characters that Postgres cannot hold (metersync checks list --check unreadable_value)`,
    );
  lines.push(...describeIssues(now.issues), ...now.parked.map(describeParked));
  const { events: shortEvents, readings } = now.intervalShortfall;
  if (shortEvents > 0)
    lines.push(
      `readings that ${counted(shortEvents, 'event')} reported and the service does not show: ${readings} (see metersync.interval_ledger)`,
    );
  const parked = now.parked.map(({ code }) => code);
  for (const { code, events, owners, nextAttemptAt, reason } of now.waiting)
    if (!parked.includes(code))
      lines.push(
        `${counted(events, 'event')} of ${ownersOf(owners)} ${events === 1 ? 'waits' : 'wait'}, tried again${nextAttemptAt === null ? '' : ` from ${timeAgo(nextAttemptAt)} on`}: ${reason}`,
      );
  return lines;
}

const ownersOf = (owners: number): string =>
  owners === 1 ? '1 company or meter' : `${owners} companies or meters`;

function describeIssues({ error, warning, info, acknowledged }: WarehouseStatus['issues']): string[] {
  if (error + warning + info + acknowledged === 0) return [];
  const others = acknowledged === 0 ? '' : `; acknowledged: ${acknowledged} more`;
  return [
    `open issues of the data: ${counted(error, 'error')}, ${counted(warning, 'warning')}, ${info} for information${others} (metersync checks list)`,
  ];
}

/** Says since when work is parked, and why; the finding says how much work it is, and what to do. */
function describeParked({ code, since, nextAttemptAt, reason }: ParkedStatus): string {
  const next = nextAttemptAt === null ? '' : `; tried again at ${timeAgo(nextAttemptAt)}`;
  return `parked since ${timeAgo(since)}: ${code}: ${reason}${next}`;
}

export function describeChecks(checks: readonly Check[]): string[] {
  const width = Math.max(...checks.map(({ name }) => name.length));
  const lines = checks.flatMap(({ name, state, saw, todo }) => [
    ...paragraph(`${state.padEnd(11)}  ${name.padEnd(width)}  `, saw),
    ...(todo === null ? [] : paragraph(''.padEnd(15 + width), `What to do: ${todo}`)),
  ]);
  const count = (wanted: Check['state']) => checks.filter(({ state }) => state === wanted).length;
  const sums = (['ok', 'warn', 'fail', 'not checked'] as const).map((state) => `${count(state)} ${state}`);
  return [...lines, sums.join(', ')];
}
