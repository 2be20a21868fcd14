import { stringify } from 'yaml';
import { scheduleIds } from '../contract/names.ts';
import type { AlarmType } from '../health/finding-type.ts';
import { type AlarmName, alarmTypes, runbookOf, watchedNames } from '../health/findings.ts';
import { generatedFrom } from './markdown.ts';

const source = 'health/findings.ts';

const entries = Object.entries(alarmTypes) as [AlarmName, AlarmType][];

/** Makes deploy/prometheus/rules.yml from the catalogue of alarms. */
export function alertRules(): string {
  return generated(rules());
}

/** Makes the same rules as an object of the Prometheus Operator. */
export function operatorRules(): string {
  return generated({
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: 'metersync', labels: { 'app.kubernetes.io/name': 'metersync' } },
    spec: rules(),
  });
}

/** One rule for all alarms that workers raise, and a rule for each alarm that only Prometheus can see. */
function rules() {
  const open = {
    alert: 'MetersyncAlarm',
    expr: 'max by (job, namespace, alert, severity) (metersync_alerts) > 0',
    labels: { runbook: '{{ $labels.alert | toLower }}' },
    annotations: {
      summary: '{{ $labels.alert }} is open: metersync status says what to do.',
      runbook: 'docs/runbooks.md#{{ $labels.alert | toLower }}',
    },
  };
  const others = entries.flatMap(([name, { promql, forMinutes, severity, means }]) =>
    promql === undefined
      ? []
      : [
          {
            alert: `Metersync${name}`,
            expr: promql,
            ...(forMinutes === 0 ? {} : { for: `${forMinutes}m` }),
            // The label is for links of dashboards, which cannot write an anchor in lower case.
            labels: { severity, runbook: name.toLowerCase() },
            annotations: { summary: means, runbook: runbookOf(name) },
          },
        ],
  );
  return { groups: [{ name: 'metersync', rules: [open, ...others] }] };
}

const generated = (value: unknown): string =>
  `# Generated from ${source}: change it there, then run "npm run verify -- --write".\n${stringify(value, { lineWidth: 0 })}`;

const raisedBy = (name: AlarmName, promql: string | undefined): string => {
  if (promql === undefined) return 'workers';
  return watchedNames.includes(name) ? 'workers and Prometheus' : 'Prometheus';
};

/** Generates docs/runbooks.md. */
export function runbooksPage(): string {
  const items = (lines: readonly string[]) => lines.map((line) => `- ${line}`).join('\n');
  const sections = entries.map(
    ([name, { severity, means, promql, causes, todo, over }]) => `## ${name}

${means} Severity \`${severity}\`, raised by ${raisedBy(name, promql)}.

${items(causes)}

**What to do:** ${todo}${over === undefined ? '' : `\n\n**When it is over:** ${over}`}`,
  );
  return `${generatedFrom(source)}
# Runbooks

This page has a section for each alarm. It says what the alarm means, lists possible causes and how to
recognise them, and says what to do. An alarm of severity \`page\` needs somebody now, an alarm of severity
\`ticket\` within days.

Workers judge the alarms each minute and can [send them](guides/running.md#notifications). Alarms that
Prometheus raises need the rules in \`deploy/prometheus/rules.yml\`. All alarms that workers raise share
one of these rules, \`MetersyncAlarm\`.

${sections.join('\n\n')}

${temporalCommands}`;
}

/** Tasks for which Temporal's own command is the better tool. */
const temporalCommands = `# Temporal's own commands

The commands below belong to [Temporal's command line](https://docs.temporal.io/cli). It reads \`TEMPORAL_ADDRESS\`,
\`TEMPORAL_NAMESPACE\` and Temporal's other variables as workers do.

## Builds of workers

Workers with \`TEMPORAL_DEPLOYMENT_NAME\` and \`TEMPORAL_WORKER_BUILD_ID\` get no work until their build
is promoted. Start workers of the new build next to the old ones, then promote it. Keep the old
workers until the new build has proved itself, and promote the old build to go back. Temporal refuses
to promote a build that does not poll all queues that the current build polls.

\`\`\`sh
temporal worker deployment describe --name metersync         # builds, and which of them is current
temporal worker deployment set-ramping-version --deployment-name metersync --build-id 0.2.0 --percentage 10
temporal worker deployment set-ramping-version --deployment-name metersync --build-id 0.2.0 --delete
temporal worker deployment set-current-version --deployment-name metersync --build-id 0.2.0
temporal worker deployment set-current-version --deployment-name metersync --unversioned
\`\`\`

The last command gives the work to workers without a build, as before the first promotion. Whatever
build is promoted, a \`metersync start\` without a build applies the events that its own receiver accepts.

## Schedules

\`BACKFILL_CRON\` and \`RECONCILE_EVERY\` are the times of the two schedules. When a worker starts, it
sets them in Temporal and leaves a paused schedule paused. A change that somebody made in Temporal
itself lasts until then.

\`\`\`sh
temporal schedule trigger --schedule-id ${scheduleIds.full} --overlap-policy BufferOne
temporal schedule trigger --schedule-id ${scheduleIds.reconcile} --overlap-policy BufferOne
temporal schedule describe --schedule-id ${scheduleIds.reconcile}
\`\`\`
`;
