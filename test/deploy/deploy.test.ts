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
const read = (path: string) => readFileSync(join(checkout, path), 'utf8');
const subcommands = buildProgram().commands.map((command) => command.name());

interface Container {
  readonly image: string;
  readonly args: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string; readonly valueFrom?: object }[];
  readonly envFrom: readonly { readonly configMapRef: { readonly name: string } }[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly securityContext: object;
  readonly livenessProbe?: { readonly httpGet?: object };
  readonly readinessProbe?: { readonly httpGet?: object };
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
}

/** Keys of a Secret that become files. A pod does not start if a key is missing that is not optional. */
interface Mounted {
  readonly name: string;
  readonly optional?: boolean;
  readonly items: readonly { readonly key: string; readonly path: string }[];
}

interface PodSpec {
  readonly automountServiceAccountToken: boolean;
  readonly securityContext: object;
  readonly containers: readonly [Container];
  readonly volumes: readonly {
    readonly projected?: { readonly sources: readonly { readonly secret: Mounted }[] };
  }[];
}

/** The fields that tests read, of all kinds of objects. */
interface Thing {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data: Readonly<Record<string, string>>;
  readonly spec: { readonly template: { readonly spec: PodSpec } };
}

describe('deploy/kubernetes', () => {
  const folder = 'deploy/kubernetes/base';
  const base = readdirSync(join(checkout, folder))
    .filter((name) => name.endsWith('.yaml') && name !== 'kustomization.yaml')
    .flatMap((name) => parseAllDocuments(read(join(folder, name))).map((one) => one.toJS() as Thing));
  const ofKind = (...kinds: string[]) => base.filter(({ kind }) => kinds.includes(kind));
  const pods = ofKind('Job', 'Deployment').map(({ metadata, spec }) => ({
    part: metadata.name.replace('metersync-', ''),
    ...spec.template.spec,
  }));
  const filesOf = ({ volumes }: PodSpec): (Mounted & { path: string })[] =>
    volumes.flatMap(({ projected }) =>
      (projected?.sources ?? []).flatMap(({ secret }) =>
        secret.items.map(({ path }) => ({ ...secret, path })),
      ),
    );
  const configured = ({ containers: [{ envFrom }] }: PodSpec) =>
    envFrom.flatMap(({ configMapRef: { name } }) =>
      Object.keys(ofKind('ConfigMap').find(({ metadata }) => metadata.name === name)?.data ?? {}),
    );

  test('what each pod runs, reads and may do is as in the golden file', async () => {
    const lines = pods.map((pod) => {
      const [{ image, args, ports = [], env = [], volumeMounts, ...container }] = pod.containers;
      const files = filesOf(pod).map(
        ({ name, path, optional }) => `${name}/${path}${optional ? ' (optional)' : ''}`,
      );
      const probes = [container.livenessProbe, container.readinessProbe].map((probe) => probe?.httpGet);
      return `${pod.part}: ${image} ${args.join(' ')}
  ports ${ports.map(({ name, containerPort }) => `${name} ${containerPort}`).join(', ') || 'none'}; probes ${JSON.stringify(probes)}
  variables ${[...configured(pod), ...env.map(({ name }) => name)].join(', ')}
  files ${files.join(', ')}
  token ${pod.automountServiceAccountToken}; ${JSON.stringify([pod.securityContext, container.securityContext])}
  mounts ${volumeMounts.map(({ mountPath }) => mountPath).join(', ')}`;
    });
    await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot('golden/kubernetes.txt');
  });

  test('runs commands in the image of the Dockerfile and the version of the package, at its ports', () => {
    const { images } = parse(read(join(folder, 'kustomization.yaml')));
    const { image } = parse(read('docker-compose.yml'), { merge: true }).services.worker;
    // If the base had another name here, an overlay that names the image would change nothing.
    expect(images).toEqual([{ name: image, newTag: manifest.version }]);
    const dockerfile = read('Dockerfile');
    for (const { part, containers } of pods) {
      expect(subcommands).toContain(part);
      expect(containers).toMatchObject([{ image, args: [part] }]);
      const mounted = containers[0].volumeMounts.map(({ mountPath }) => mountPath);
      expect(mounted).toContain(/METERSYNC_DIR=(\S+)/.exec(dockerfile)?.[1]);
    }
    const ports = pods.flatMap(({ containers }) => containers[0].ports ?? []);
    const { RECEIVER_PORT, METRICS_PORT } = settings;
    expect(dockerfile).toContain(`EXPOSE ${RECEIVER_PORT?.default}`);
    for (const [name, setting] of [
      ['webhooks', RECEIVER_PORT],
      ['metrics', METRICS_PORT],
    ] as const)
      expect(new Set(ports.filter((port) => port.name === name).map((port) => port.containerPort))).toEqual(
        new Set([Number(setting?.default)]),
      );
  });

  test.each(pods)('$part gets only variables that are settings, and secrets only as files', (pod) => {
    const [{ env = [], volumeMounts }] = pod.containers;
    const variables = [...configured(pod), ...env.map(({ name }) => name)];
    const files = secretVariables.map((name) => `${name}_FILE`);
    const temporals = ['TEMPORAL_NAMESPACE', 'TEMPORAL_API_KEY', 'TEMPORAL_TLS'];
    expect(
      variables.filter((one) => ![...Object.keys(settings), ...temporals, ...files].includes(one)),
    ).toEqual([]);
    expect(new Set(variables).size).toBe(variables.length);
    expect(variables.filter((one) => /PASSWORD|SECRETS?$|_KEYS?$/.test(one))).toEqual([]);
    expect(env.filter(({ valueFrom }) => valueFrom !== undefined)).toEqual([]);
    const at = volumeMounts.find(({ name }) => name === 'secrets')?.mountPath ?? '';
    const named = env.filter(({ name }) => name.endsWith('_FILE')).map(({ value }) => value);
    const mounted = filesOf(pod);
    expect(mounted.map(({ path }) => join(at, path))).toEqual(expect.arrayContaining(named));
    const needed = mounted.filter(({ path, optional }) => !optional && files.includes(`${path}_FILE`));
    expect(named).toEqual(expect.arrayContaining(needed.map(({ path }) => join(at, path))));
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
