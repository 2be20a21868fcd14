import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { secretVariables } from '../../app/settings/secret-files.ts';
import { readSettings } from '../../app/settings/settings.ts';
import { buildProgram } from '../../cli/program.ts';
import manifest from '../../package.json' with { type: 'json' };
import { settings } from '../../verify/settings-page.ts';

const checkout = join(import.meta.dirname, '../..');
const folder = join(checkout, 'deploy/kubernetes');
const read = (path: string) => readFileSync(join(checkout, path), 'utf8');

interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: object;
}

/** Keys of a Secret that become files. A pod does not start if a key is missing that is not optional. */
interface Mounted {
  readonly name: string;
  readonly optional?: boolean;
  readonly items: readonly { readonly key: string; readonly path: string }[];
}

interface Container {
  readonly image: string;
  readonly args: readonly string[];
  readonly env?: readonly Variable[];
  readonly envFrom: readonly { readonly configMapRef: { readonly name: string } }[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly securityContext: object;
  readonly livenessProbe?: { readonly httpGet?: object };
  readonly readinessProbe?: { readonly httpGet?: object };
  readonly lifecycle?: object;
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
}

interface PodSpec {
  readonly automountServiceAccountToken: boolean;
  readonly terminationGracePeriodSeconds: number;
  readonly securityContext: object;
  readonly containers: readonly Container[];
  readonly volumes: readonly {
    readonly name: string;
    readonly projected?: { readonly sources: readonly { readonly secret: Mounted }[] };
  }[];
}

/** The fields that tests read, of all kinds of objects. */
interface Thing {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data: Readonly<Record<string, string>>;
  readonly spec: {
    readonly replicas: number;
    readonly selector: object;
    readonly minAvailable: number;
    readonly podSelector: { readonly matchLabels: Readonly<Record<string, string>> };
    readonly template: { readonly metadata: { readonly labels: object }; readonly spec: PodSpec };
    readonly strategy: { readonly rollingUpdate: { readonly maxUnavailable: number } };
    readonly ports: readonly { readonly targetPort: string }[];
    readonly egress?: readonly { readonly ports: readonly { readonly port: number }[] }[];
    readonly ingress?: readonly { readonly ports: readonly { readonly port: number }[] }[];
    readonly groups: readonly object[];
  };
}

interface Kustomization {
  readonly resources: readonly string[];
  readonly images: readonly { readonly name: string; readonly newTag: string }[];
}

const subcommands = buildProgram().commands.map((command) => command.name());
const files = (part: string) => readdirSync(join(folder, part)).filter((name) => name.endsWith('.yaml'));
const kustomization = (part: string) =>
  parse(readFileSync(join(folder, part, 'kustomization.yaml'), 'utf8')) as Kustomization;
const things = (part: string): Thing[] =>
  files(part)
    .filter((name) => name !== 'kustomization.yaml')
    .flatMap((name) =>
      parseAllDocuments(readFileSync(join(folder, part, name), 'utf8')).map((one) => one.toJS() as Thing),
    );

const base = things('base');
const ofKind = (kind: string) => base.filter((thing) => thing.kind === kind);
const named = (kind: string, part?: string): Thing => {
  const wanted = part === undefined ? 'metersync' : `metersync-${part}`;
  const thing = ofKind(kind).find(({ metadata }) => metadata.name === wanted);
  if (thing === undefined) throw new Error(`there is no ${kind} ${wanted}`);
  return thing;
};

const running = ['receiver', 'worker', 'console'];
const parts = ['migrate', ...running] as const;
const podOf = (part: string) => named(part === 'migrate' ? 'Job' : 'Deployment', part).spec.template.spec;
const containerOf = (part: string): Container => {
  const [container, ...more] = podOf(part).containers;
  if (container === undefined || more.length > 0) throw new Error(`${part} has to be one container`);
  return container;
};
const configured = (part: string): string[] =>
  containerOf(part).envFrom.flatMap(({ configMapRef: { name } }) =>
    Object.keys(ofKind('ConfigMap').find(({ metadata }) => metadata.name === name)?.data ?? {}),
  );
const variablesOf = (part: string): readonly Variable[] => containerOf(part).env ?? [];
const secretsOf = (part: string): readonly Mounted[] =>
  podOf(part).volumes.flatMap(({ projected }) => projected?.sources.map(({ secret }) => secret) ?? []);
/** Names of the files of secrets that a part has. */
const filesOf = (part: string): string[] =>
  secretsOf(part).flatMap(({ items }) => items.map(({ path }) => path));

describe('deploy/kubernetes', () => {
  test('runs the image of the Dockerfile, in the version of the package, with existing subcommands', () => {
    const compose = parse(read('docker-compose.yml'), { merge: true });
    // If the base had another name here, an overlay that names the image would change nothing.
    expect(kustomization('base').images).toEqual([
      { name: compose.services.worker.image, newTag: manifest.version },
    ]);
    for (const part of parts) {
      const { image, args } = containerOf(part);
      expect({ image, args }).toEqual({ image: compose.services.worker.image, args: [part] });
      expect(subcommands).toContain(part);
    }
  });

  test.each(parts)('%s gets only variables that are settings', (part) => {
    const names = [...configured(part), ...variablesOf(part).map(({ name }) => name)];
    const temporals = ['TEMPORAL_NAMESPACE', 'TEMPORAL_API_KEY', 'TEMPORAL_TLS'];
    const files = secretVariables.map((name) => `${name}_FILE`);
    const known = [...Object.keys(settings), ...temporals, ...files];
    expect(names.filter((name) => !known.includes(name))).toEqual([]);
    expect(new Set(names).size).toBe(names.length);
  });

  test('each part mounts its own Secret, and the receiver has no access to the warehouse', () => {
    for (const part of parts) {
      expect(new Set(secretsOf(part).map(({ name }) => name))).toEqual(new Set([`metersync-${part}`]));
      for (const { key, path } of secretsOf(part).flatMap(({ items }) => items)) expect(path).toBe(key);
      expect(variablesOf(part).filter(({ valueFrom }) => valueFrom !== undefined)).toEqual([]);
      const ours = filesOf(part).filter((name) => name === name.toUpperCase());
      expect(secretVariables).toEqual(expect.arrayContaining(ours));
      const { volumeMounts } = containerOf(part);
      const folder = volumeMounts.find(({ name }) => name === 'secrets')?.mountPath;
      const required = secretsOf(part).filter(({ optional = false }) => !optional);
      const secrets = required.flatMap(({ items }) => items.map(({ path }) => path));
      for (const name of secrets.filter((one) => secretVariables.some((secret) => secret === one)))
        expect(variablesOf(part)).toContainEqual({ name: `${name}_FILE`, value: join(folder ?? '', name) });
      for (const { name, value } of variablesOf(part).filter((one) => one.name.endsWith('_FILE')))
        expect(
          filesOf(part).map((file) => join(folder ?? '', file)),
          name,
        ).toContain(value);
    }
    expect(filesOf('receiver')).not.toContain('DATABASE_URL');
    expect(JSON.stringify(named('Deployment', 'receiver'))).not.toMatch(/postgres|DATABASE|5432/i);
    expect(filesOf('migrate')).toEqual(['DATABASE_URL']);
    expect(parts.filter((part) => filesOf(part).includes('SERVICE_API_KEY'))).toEqual(['worker']);
    expect(ofKind('Secret')).toEqual([]);
    expect(JSON.stringify(ofKind('ConfigMap'))).not.toMatch(/PASSWORD|SECRET|_KEY/);
  });

  test('no pod has a right that it does not need', () => {
    const dockerfile = read('Dockerfile');
    expect(dockerfile).toContain('USER node');
    const stateFolder = /METERSYNC_DIR=(\S+)/.exec(dockerfile)?.[1];
    for (const part of parts) {
      expect(podOf(part)).toMatchObject({
        automountServiceAccountToken: false,
        securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } },
      });
      expect(containerOf(part).securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      const mounted = containerOf(part).volumeMounts.map(({ mountPath }) => mountPath);
      expect(mounted).toEqual(expect.arrayContaining(['/tmp', stateFolder]));
    }
  });

  test('ports are the ports of the image, and probes ask the private port', () => {
    const port = (part: string, name: string) =>
      containerOf(part).ports?.find((one) => one.name === name)?.containerPort;
    expect(port('receiver', 'webhooks')).toBe(Number(/EXPOSE (\d+)/.exec(read('Dockerfile'))?.[1]));
    expect(port('receiver', 'webhooks')).toBe(Number(settings.RECEIVER_PORT?.default));
    for (const part of running) {
      expect(port(part, 'metrics')).toBe(Number(settings.METRICS_PORT?.default));
      expect(containerOf(part)).toMatchObject({
        livenessProbe: { httpGet: { path: '/healthz', port: 'metrics' } },
        readinessProbe: { httpGet: { path: '/readyz', port: 'metrics' } },
      });
    }
    expect(port('receiver', named('Service', 'receiver').spec.ports[0]?.targetPort ?? '')).toBeDefined();
  });
});

describe('deploy/grafana and deploy/prometheus', () => {
  test.each(['overview', 'inside'])('the dashboard %s shows only processes of metersync', (name) => {
    const { templating, panels } = parse(read(`deploy/grafana/dashboards/${name}.json`)) as {
      templating: { list: { name: string; query: string; allValue?: string }[] };
      panels: { targets: { expr: string }[] }[];
    };
    const job = templating.list.find((variable) => variable.name === 'job');
    expect(job?.query).toBe('label_values(metersync_build_info, job)');
    expect(job).not.toHaveProperty('allValue');
    const queries = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
    expect(queries).not.toEqual([]);
    expect(queries.filter((query) => !/job=~"\$job\b/.test(query))).toEqual([]);
  });

  test("Prometheus scrapes the port of the processes, and loads metersync's rules", () => {
    const { scrape_configs, rule_files } = parse(read('deploy/prometheus/prometheus.yml'));
    expect(scrape_configs[0].dns_sd_configs[0].port).toBe(readSettings({}).metrics.port);
    expect(rule_files).toEqual(['rules.yml']);
  });
});

describe('deploy/systemd', () => {
  const unit = read('deploy/systemd/metersync@.service');
  const section = /^## systemd$.*?(?=^## )/ms.exec(read('docs/running.md'))?.[0] ?? '';

  test('the unit of systemd runs the command of the package, in the folder in which the guide installs it', () => {
    const [, prefix] = /npm install --prefix (\S+)/.exec(section) ?? [];
    expect(unit).toContain(
      `ExecStart=/usr/bin/node ${prefix}/node_modules/metersync/${manifest.bin.metersync} %i\n`,
    );
    expect(manifest.files).toContain('deploy');
    expect(section).toContain('node_modules/metersync/deploy/systemd/metersync@.service');
  });

  test('the parts that the unit and its guide name are commands, and a part ends only with an error to start again', () => {
    const parts = [...`${unit}${section}`.matchAll(/metersync@([a-z]+)/g)].map(([, part]) => part);
    expect(new Set(parts)).toEqual(new Set(['receiver', 'worker', 'console', 'migrate']));
    expect(subcommands).toEqual(expect.arrayContaining(parts));
    // A migration that succeeded must not run again.
    expect(unit).toContain('\nRestart=on-failure\n');
  });

  test('the guide of systemd sets only variables that are settings, and secrets as files', () => {
    const variables = [...section.matchAll(/^([A-Z_]+)=/gm)].map(([, name = '']) => name);
    expect(variables.length).toBeGreaterThan(9);
    const files = [...secretVariables.map((name) => `${name}_FILE`), 'WEBHOOK_SECRETS_FILE'];
    const known = [...Object.keys(settings), ...files, 'TEMPORAL_TLS'];
    expect(variables.filter((name) => !known.includes(name))).toEqual([]);
    expect(variables.filter((name) => secretVariables.some((secret) => secret === name))).toEqual([]);
  });
});
