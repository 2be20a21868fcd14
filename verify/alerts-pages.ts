import { stringify } from 'yaml';
import type { AlarmType } from '../health/finding-type.ts';
import { type AlarmName, alarmTypes, runbookOf, watchedNames } from '../health/findings.ts';

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
            // The label is for links in dashboards, which cannot convert an anchor to lower case.
            labels: { severity, runbook: name.toLowerCase() },
            annotations: { summary: means, runbook: runbookOf(name) },
          },
        ],
  );
  return { groups: [{ name: 'metersync', rules: [open, ...others] }] };
}

const generated = (value: unknown): string =>
  `# Generated from ${source}: change it there, then run "npm run verify -- --write".\n${stringify(value, { lineWidth: 0 })}`;

/** What the head of the page does not say: the severity `page`, and that Prometheus raises an alarm. */
const exceptions = (name: AlarmName, { severity, promql }: AlarmType): string[] => [
  ...(severity === 'page' ? ['Severity `page`.'] : []),
  ...(promql === undefined
    ? []
    : [`Raised by ${watchedNames.includes(name) ? 'workers and ' : ''}Prometheus.`]),
];

/**
 * Makes docs/runbooks.md. The code says what an alarm means and what to do; the page itself may have the causes
 * of an alarm, and how to see that it is over, which stay as they are.
 */
export function runbooksPage(page: string): string {
  const written = new Map(
    page
      .split(/^## /m)
      .slice(1)
      .map((section) => [section.split('\n', 1)[0], section]),
  );
  const sections = entries.map(([name, type]) => {
    const section = written.get(name) ?? '';
    const [causes] = /^- .+(\n- .+)*/m.exec(section) ?? [];
    const [over] = /^\*\*When it is over:\*\* .+/m.exec(section) ?? [];
    return [
      `## ${name}`,
      [type.means, ...exceptions(name, type)].join(' '),
      ...(causes === undefined ? [] : [causes]),
      `**Do:** ${type.todo}`,
      ...(over === undefined ? [] : [over]),
    ].join('\n\n');
  });
  return `<!-- Write causes here. The other texts are in ${source}; "npm run verify -- --write" updates them. -->
# Runbooks

This page has a section for each alarm: what it means, possible causes, and what to do. An alarm of severity
\`page\` needs somebody now, and all others, of severity \`ticket\`, within days. Workers judge the alarms each
minute and can [send them](running.md#notifications), unless a section says that Prometheus raises the alarm.
That needs the rules in \`deploy/prometheus/rules.yml\`, which has one rule, \`MetersyncAlarm\`, for all alarms
that workers raise.

${sections.join('\n\n')}
`;
}
