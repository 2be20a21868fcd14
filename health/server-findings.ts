import { alarmPolicy, notifyPolicy } from '../contract/retry-policy.ts';
import { describeFit, fitOf } from '../contract/schema-versions.ts';
import { formatSeconds, formatTime } from '../contract/times.ts';
import { countedToMax } from '../contract/words.ts';
import { type AlarmType, type Found, foundIf, inTemporal, inWarehouse } from './finding-type.ts';
import type { Away, Health } from './measured.ts';
import { max, nobodyReports, noneReady } from './promql.ts';

/** What cannot be asked is unknown, but nothing works while both Postgres and Temporal are away. */
const unreachable = ({ away, todo }: Away, { warehouse, temporal }: Health): Found => ({
  saw: away,
  todo,
  word: 'away' in warehouse && 'away' in temporal ? 'Broken' : 'Unknown',
});

/** Whether the watch last ran so long ago that it seems to have stopped. */
export const watchIsLate = (lookedSecondsAgo: number | null): boolean =>
  lookedSecondsAgo !== null && lookedSecondsAgo > notifyPolicy.heartbeatMaxSeconds;

/** Whether the schema keeps this code from reading the warehouse. */
const isUnfit = ({ schema }: Health): boolean =>
  schema !== null && ['behind', 'tooNew'].includes(fitOf(schema));

/** Findings about what metersync runs on: Postgres, Temporal, workers and the watch. */
export const serverFindings = {
  WarehouseDown: {
    name: 'warehouse',
    brief: 'Postgres does not answer',
    severity: 'page',
    means: 'No worker reaches Postgres, or none can write there.',
    judge: (health) =>
      'away' in health.warehouse && !isUnfit(health) ? [unreachable(health.warehouse, health)] : [],
    // The alarms that the watch holds open stand in the warehouse.
    promql: `${max('metersync_warehouse_up')} < 1`,
    forMinutes: 5,
    causes: ['A full disk, the network, the password of the workers, or too many connections: see its log.'],
    todo: 'Bring Postgres up. Events wait in Temporal meanwhile.',
  },
  TemporalDown: {
    name: 'Temporal',
    brief: 'Temporal does not answer',
    severity: 'page',
    means: 'No worker reaches Temporal: nothing runs.',
    judge: (health) => ('away' in health.temporal ? [unreachable(health.temporal, health)] : []),
    // The watch runs in Temporal.
    stopsWatch: true,
    promql: `${max('metersync_temporal_up')} < 1`,
    forMinutes: 5,
    causes: [
      'Temporal does not run, or its database is away: see its log.',
      'The network, or the certificate or key of the workers: `metersync doctor`.',
    ],
    todo: 'Bring Temporal up. Receivers answer 503 meanwhile, and the service delivers again.',
  },
  WorkersGone: {
    name: 'workers',
    brief: 'no worker takes events',
    severity: 'page',
    means: 'No worker takes events.',
    judge: inTemporal(({ idle, absent }) =>
      absent === null
        ? foundIf(idle.includes('events'), { saw: `no worker is running for ${idle.join(', ')}` })
        : [
            {
              saw: `Temporal gives events to ${absent}, and workers of others poll`,
              todo: 'Promote a build that polls with temporal worker deployment set-current-version; see WorkersGone in docs/runbooks.md.',
            },
          ],
    ),
    promql: noneReady('worker'),
    forMinutes: 5,
    causes: [
      'No worker process runs.',
      'They run and do not poll: see WorkerDeaf, and whether they reach Temporal.',
      '`metersync_worker_version_current` is 0: Temporal gives events to another build. Promote the build that runs, [as below](#builds-of-workers).',
    ],
    todo: 'Run `metersync start`, or `metersync worker`. Acknowledged events wait in Temporal.',
    over: '`metersync status` shows running workers.',
  },
  QueueIdle: {
    name: 'workers',
    brief: 'work waits without a worker',
    severity: 'ticket',
    means: 'No worker takes the work of a queue.',
    judge: inTemporal(({ idle, absent }) =>
      foundIf(idle.length > 0 && absent === null && !idle.includes('events'), {
        saw: `no worker is running for ${idle.join(', ')}: their work waits`,
      }),
    ),
    forMinutes: 15,
    causes: ['A worker that takes only some queues is gone, or stopped polling: see WorkerDeaf.'],
    todo: 'Run `metersync start`, or `metersync worker`.',
  },
  WorkflowsStuck: {
    name: 'workflows',
    brief: 'workflows stand still',
    severity: 'page',
    means: 'Tasks of workflows keep failing: their work stands still.',
    judge: inTemporal(({ stuckWorkflows }) => {
      const workflows = stuckWorkflows ?? 0;
      return foundIf(workflows > 0, {
        saw: `tasks of ${countedToMax(workflows, 'workflow')} keep failing: their work stands still`,
        counts: { workflows },
        todo: 'Run metersync doctor; see WorkflowsStuck in docs/runbooks.md.',
      });
    }),
    forMinutes: 10,
    causes: [
      'NonDeterminism or TooLarge is open.',
      'Temporal’s web page lists them by `TemporalReportedProblems`, with their failures.',
    ],
    todo: 'Fix what the failure names.',
  },
  HeartbeatStopped: {
    name: 'watch',
    brief: 'the watch has stopped',
    severity: 'page',
    means: 'The watch has stopped: nobody wakes lost work or sends alarms.',
    judge: ({ warehouse, temporal }) => {
      if ('away' in warehouse) return undefined;
      const { lookedSecondsAgo } = warehouse.watch;
      if (!watchIsLate(lookedSecondsAgo)) return [];
      const awaySince = 'away' in temporal ? null : temporal.foundAwaySince;
      if (awaySince !== null)
        return [
          {
            word: 'Catching up',
            brief: 'Postgres was away, and answers again',
            saw: `Postgres was away since ${formatTime(awaySince)}, and answers again; the watch looks within a minute`,
            todo: 'Nothing: it ends by itself.',
          },
        ];
      return [
        {
          saw: `the watch last ran ${formatSeconds(lookedSecondsAgo ?? 0)} ago: nobody sends alarms`,
          todo: 'Run metersync start, or metersync worker; see the workflow watch on Temporal’s web page.',
        },
      ];
    },
    // HEARTBEAT_URL reports it without Prometheus.
    stopsWatch: true,
    promql: `time() - ${max('last_over_time(metersync_heartbeat_timestamp_seconds[1d])')} > ${notifyPolicy.heartbeatMaxSeconds} or ${nobodyReports('metersync_heartbeat_timestamp_seconds')}`,
    forMinutes: 2,
    causes: [
      'WorkersGone, WarehouseDown or TemporalDown is open.',
      "The schedule `metersync-watch` is paused or gone on Temporal's web page. A worker that starts makes it anew.",
      'The workflow `watch` fails: its failure is shown there.',
    ],
    todo: 'Fix the cause, or restart a worker.',
  },
  SchemaMismatch: {
    name: 'schema',
    brief: 'the schema is of another version',
    severity: 'ticket',
    means: 'The schema of the warehouse is not that of the code that runs.',
    judge: (health) => {
      const { schema, warehouse } = health;
      if (schema === null) return undefined;
      if (schema.known === schema.applied) return [];
      const { saw, todo } = describeFit(schema);
      if (isUnfit(health) && 'away' in warehouse) return [unreachable({ away: saw, todo }, health)];
      return [{ saw, todo }];
    },
    forMinutes: 15,
    causes: [
      '`metersync_schema_migrations`: more are known than applied where `metersync migrate` was not run.',
      'More are applied than known: an older process runs.',
    ],
    todo: 'Run `metersync migrate`, or finish the rollout.',
  },
  NotificationsFailing: {
    name: 'notifications',
    brief: 'alarms cannot be sent',
    severity: 'ticket',
    means: `NOTIFY_URL has not taken an alarm for ${formatSeconds(notifyPolicy.unsentMaxSeconds)}.`,
    judge: inWarehouse(({ watch: { unsent } }) =>
      unsent === null || unsent.seconds <= notifyPolicy.unsentMaxSeconds
        ? []
        : [{ saw: `NOTIFY_URL has taken no alarm for ${formatSeconds(unsent.seconds)}: ${unsent.error}` }],
    ),
    forMinutes: 0,
    causes: [
      '`metersync status` has the last error.',
      '4xx: its address, key or `NOTIFY_SECRET`. No answer: the network.',
    ],
    todo: 'Correct `NOTIFY_URL` and `NOTIFY_SECRET`, and restart the workers. Open alarms are sent then, and those that closed within a day.',
  },
  CertificateExpires: {
    name: 'certificate',
    brief: 'the certificate for Temporal expires soon',
    severity: 'ticket',
    means: 'The client certificate for Temporal ends within 14 days.',
    judge: inTemporal(({ certificate }) =>
      certificate === null || certificate.secondsLeft >= alarmPolicy.certificateSeconds
        ? []
        : [{ saw: `the client certificate for Temporal expires ${formatTime(certificate.expiresAt)}` }],
    ),
    forMinutes: 0,
    causes: ['`metersync_temporal_certificate_expiry_timestamp_seconds` says when.'],
    todo: 'Renew it where the configuration of Temporal names it, and restart receivers and workers.',
  },
} as const satisfies Readonly<Record<string, AlarmType>>;
