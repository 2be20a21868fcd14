import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';

import { type AlarmName, alarmNames, alarmTypes, isAlarmName, watchedNames } from '../../health/findings.ts';
import { createMetrics, observeDeployment } from '../../health/registry.ts';
import { alertRules } from '../../verify/alerts-pages.ts';
import { amtool, promtool } from '../support/debian.ts';
import { temporaryFolder } from '../support/folder.ts';
import { health, warehouse } from '../support/health-states.ts';

/** Series with their values at each step, in promtool's notation. */
type Series = Readonly<Record<string, string>>;

interface Case {
  readonly fires: Series;
  /** Labels of the alarm, in addition to its severity. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly rests: Series;
}

const ready = 'metersync_ready{part="receiver",instance="a"}';
const worker = 'metersync_ready{part="worker",instance="a"}';
const answered = (reason: string, code: number, instance = 'a') =>
  `metersync_receiver_answers_total{reason="${reason}",code="${code}",instance="${instance}"}`;
const failedTasks = (reason: string) =>
  `temporal_workflow_task_execution_failed_total{failure_reason="${reason}",instance="a"}`;
const requests = (result: string) =>
  `metersync_service_requests_total{endpoint="documents",result="${result}",instance="a"}`;
/** A series that marks a process as a process of metersync. */
const ours = { 'metersync_build_info{part="worker",instance="a"}': '1x70' };

const open = (alert: string) => `metersync_alerts{alert="${alert}",severity="ticket",instance="a"}`;

const cases: Readonly<Record<string, Case>> = {
  Alarm: {
    fires: { [open('EventsDead')]: '1x70', [open('Decide')]: '0x70' },
    labels: { alert: 'EventsDead' },
    rests: { [open('EventsDead')]: '1x30 0x40' },
  },
  ReceiverDown: { fires: { [ready]: '1 0x70' }, rests: { [ready]: '0x3 1x70' } },
  ReceiverRefusing: {
    fires: { [answered('durable', 204)]: '0+90x70', [answered('unavailable', 503)]: '0+10x70' },
    rests: { [answered('durable', 204)]: '0+99x70', [answered('unavailable', 503)]: '0+1x70' },
  },
  SignaturesRefused: {
    fires: { [answered('signature-wrong', 401)]: '0+5x70', [answered('durable', 204)]: '7x70' },
    rests: { [answered('signature-wrong', 401)]: '0+5x70', [answered('durable', 204)]: '0+1x70' },
  },
  ClockOff: {
    fires: { [answered('timestamp-old', 401)]: '0+2x70' },
    rests: { [answered('timestamp-old', 401)]: '0x30 3x40' },
  },
  SecretsFileBad: {
    fires: { metersync_receiver_secrets_valid: '1x10 0x60' },
    rests: { metersync_receiver_secrets_valid: '1x70' },
  },
  HeartbeatStopped: {
    fires: { metersync_heartbeat_timestamp_seconds: '0x70' },
    rests: { metersync_heartbeat_timestamp_seconds: '0+60x70' },
  },
  WorkersGone: {
    fires: { [worker]: '0x70' },
    rests: { [worker]: '1x70' },
  },
  NonDeterminism: {
    fires: { ...ours, [failedTasks('NonDeterminismError')]: '0+1x70' },
    rests: { ...ours, [failedTasks('NonDeterminismError')]: '4x70', [failedTasks('Other')]: '0+1x70' },
  },
  WarehouseDown: {
    fires: { 'metersync_warehouse_up{instance="a"}': '0x70', 'metersync_warehouse_up{instance="b"}': '0x70' },
    rests: { 'metersync_warehouse_up{instance="a"}': '0x70', 'metersync_warehouse_up{instance="b"}': '1x70' },
  },
  TemporalDown: {
    fires: { 'metersync_temporal_up{instance="a"}': '0x70', 'metersync_temporal_up{instance="b"}': '0x70' },
    rests: { 'metersync_temporal_up{instance="a"}': '0x70', 'metersync_temporal_up{instance="b"}': '1x70' },
  },
  ServiceFailing: {
    fires: { [requests('ok')]: '0+7x70', [requests('error')]: '0+3x70' },
    rests: { [requests('ok')]: '0+9x70', [requests('not_found')]: '0+5x70' },
  },
};

let made: Awaited<ReturnType<typeof temporaryFolder>>;
let folder: string;
let tool: string;
beforeAll(async () => {
  made = await temporaryFolder();
  folder = made.path;
  tool = await promtool();
  await writeFile(join(folder, 'rules.yml'), alertRules());
  const { groups } = parse(alertRules()) as { groups: { name: string; rules: { alert: string }[] }[] };
  for (const { name, rules } of groups) {
    for (const rule of rules)
      await writeFile(rulesOf(rule.alert), stringify({ groups: [{ name, rules: [rule] }] }));
  }
}, 300_000);
afterAll(() => made?.remove());

interface RuleTest {
  readonly input_series: readonly object[];
  readonly alert_rule_test: readonly {
    readonly eval_time: string;
    readonly alertname: string;
    readonly exp_alerts: readonly object[];
  }[];
}

/** Path of the file with the rule of one alarm. */
const rulesOf = (alarm: string): string => join(folder, `${alarm}.yml`);

/**
 * Lets promtool evaluate the rules; throws its message. Tests of one alarm load only its rule: it is faster.
 */
async function evaluate(name: string, tests: readonly RuleTest[], step = 1): Promise<void> {
  const byRules = Map.groupBy(tests, ({ alert_rule_test: [first, ...more] }) =>
    first === undefined || more.length > 0 ? join(folder, 'rules.yml') : rulesOf(first.alertname),
  );
  const files = await Promise.all(
    [...byRules].map(async ([rules, some], at) => {
      const file = join(folder, `${name}-${at}.yml`);
      const stepped = some.map((one) => ({ interval: `${step}m`, ...one }));
      const content = { rule_files: [rules], evaluation_interval: `${step}m`, tests: stepped };
      await writeFile(file, stringify(content));
      return file;
    }),
  );
  await promisify(execFile)(tool, ['test', 'rules', ...files]).catch((error) => {
    throw new Error(`${error.stdout}\n${error.stderr}`);
  });
}

/** Returns the texts that a rule must have. The rule `Alarm` has the texts of the alarm that is open. */
function textsOf(name: string, { alert = '' }: Readonly<Record<string, string>> = {}) {
  const alarm = isAlarmName(name) ? alarmTypes[name] : alarmTypes[alert as AlarmName];
  const of = isAlarmName(name) ? name : alert;
  const summary = isAlarmName(name) ? alarm?.means : `${alert} is open: metersync status says what to do.`;
  return { severity: alarm?.severity, of: of.toLowerCase(), summary };
}

function expectation(
  name: string,
  series: Series,
  minutes: number,
  labels: Readonly<Record<string, string>> | undefined,
): RuleTest {
  const { severity, of, summary } = textsOf(name, labels);
  const alarm = {
    exp_labels: { severity, runbook: of, ...labels },
    exp_annotations: { summary, runbook: `docs/runbooks.md#${of}` },
  };
  return {
    input_series: Object.entries(series).map(([of, values]) => ({ series: of, values })),
    alert_rule_test: [
      {
        eval_time: `${minutes}m`,
        alertname: `Metersync${name}`,
        exp_alerts: labels === undefined ? [] : [alarm],
      },
    ],
  };
}

test('the rules are valid, and so is the configuration in deploy/ that loads them', async () => {
  await promisify(execFile)(tool, ['check', 'rules', join(folder, 'rules.yml')]);
  await promisify(execFile)(tool, ['check', 'config', 'deploy/prometheus/prometheus.yml']);
});

test('the configuration of Alertmanager is valid, and names alarms that exist', async () => {
  const config = 'deploy/prometheus/alertmanager.yml';
  await promisify(execFile)(await amtool(), ['check-config', config]);
  const named = (await readFile(config, 'utf8')).match(/Metersync\w+/g) ?? [];
  expect(named.filter((name) => !isAlarmName(name.replace('Metersync', '')))).toEqual([]);
});

const all = Object.entries(cases);

test('each rule has a test case', () => {
  const ofPrometheus = alarmNames.filter((name) => alarmTypes[name].promql !== undefined);
  expect(Object.keys(cases).toSorted()).toEqual(['Alarm', ...ofPrometheus].toSorted());
});

/** Makes the same series as another process would report them. */
const replicaOf = (series: Series): Series =>
  Object.fromEntries(
    Object.entries(series).map(([name, values]) => {
      if (name.includes('instance="')) return [name.replace('instance="', 'instance="z'), values];
      return [name.endsWith('}') ? name.replace(/}$/, ',instance="z"}') : `${name}{instance="z"}`, values];
    }),
  );

/** Makes the same series with the labels of a deployment. */
const inDeployment = (series: Series, job: string, namespace: string): Series =>
  Object.fromEntries(
    Object.entries(series).map(([name, values]) => {
      const [bare, labels = ''] = name.replace(/}$/, '').split('{');
      const all = [...(labels === '' ? [] : [labels]), `job="${job}"`, `namespace="${namespace}"`];
      return [`${bare}{${all.join(',')}}`, values];
    }),
  );

/** A deployment that fires, next to another one that rests, in the same Prometheus. */
const nextTo = (otherJob: string, otherNamespace: string) =>
  all.map(([name, { fires, rests, labels = {} }]) => {
    const both = { ...inDeployment(fires, 'one', 'a'), ...inDeployment(rests, otherJob, otherNamespace) };
    return expectation(name, both, 60, { ...labels, job: 'one', namespace: 'a' });
  });

/** Alarms about a part that is gone, with its series, what another deployment reports, and its labels. */
const absences = [
  ['ReceiverDown', ready, '1', '1x150', { part: 'receiver' }],
  ['WorkersGone', worker, '1', '1x150', { part: 'worker' }],
  ['HeartbeatStopped', 'metersync_heartbeat_timestamp_seconds', '0', '0+1200x150', {}],
] as const;
const gone = (at: number) =>
  absences.flatMap(([name, series, last, others, later]) => {
    const isToday = at <= 1_440;
    const ended = inDeployment({ [series]: `${last} stale` }, 'one', 'a');
    const another = inDeployment({ [series]: others }, 'two', 'a');
    const labels = { job: 'one', namespace: 'a' };
    return [
      expectation(name, { ...ended, ...another }, at, isToday ? labels : undefined),
      expectation(name, ended, at, isToday ? labels : later),
    ];
  });

const groups: Readonly<Record<string, { readonly tests: readonly RuleTest[]; readonly step?: number }>> = {
  'each alarm fires when it should, and only then': {
    tests: all.flatMap(([name, { fires, rests, labels = {} }]) => [
      expectation(name, fires, 60, labels),
      expectation(name, rests, 60, undefined),
    ]),
  },
  'two processes that report the same raise one alarm': {
    tests: all.map(([name, { fires, labels = {} }]) =>
      expectation(name, { ...fires, ...replicaOf(fires) }, 60, labels),
    ),
  },
  'a deployment of another job neither hides nor raises an alarm': { tests: nextTo('two', 'a') },
  'a deployment of another namespace neither hides nor raises an alarm': { tests: nextTo('one', 'b') },
  // For a day the alarm can name the deployment. Later only the last deployment of a Prometheus is missed.
  'a deployment that is gone raises alarms': { tests: [...gone(120), ...gone(1_500)], step: 20 },
  'series of other programs in the same Prometheus raise no alarm': {
    tests: [expectation('NonDeterminism', { [failedTasks('NonDeterminismError')]: '0+1x70' }, 60, undefined)],
  },
  'without any series only alarms about missing series fire': {
    tests: all.map(([name]) => expectation(name, {}, 60, absences.find(([absent]) => absent === name)?.[4])),
  },
};

test.each(Object.entries(groups))('%s', async (name, { tests, step }) => {
  await evaluate(name.replaceAll(/\W/g, '-'), tests, step);
});

test('each alarm that the watch can raise is in the metric, with its severity', async () => {
  const metrics = createMetrics();
  const watch = {
    ...warehouse.watch,
    open: [{ name: 'EventsDead', key: '', openedAt: '2026-11-22', notifiedAt: null }],
  };
  observeDeployment(metrics, async () => health({ watch }));
  const samples = (await metrics.asText()).matchAll(
    /^metersync_alerts\{alert="(\w+)",severity="(\w+)"\} (\d)$/gm,
  );
  expect([...samples].map(([, ...sample]) => sample)).toEqual(
    watchedNames.map((name) => [name, alarmTypes[name].severity, name === 'EventsDead' ? '1' : '0']),
  );
});
