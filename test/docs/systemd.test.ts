import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { secretVariables } from '../../app/settings/secret-files.ts';
import { buildProgram } from '../../cli/program.ts';
import manifest from '../../package.json' with { type: 'json' };
import { settings } from '../../verify/settings-page.ts';

const checkout = resolve(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(checkout, path), 'utf8');
const unit = read('deploy/systemd/metersync@.service');
const section = /^## systemd$.*?(?=^## )/ms.exec(read('docs/guides/running.md'))?.[0] ?? '';
const subcommands = buildProgram().commands.map((command) => command.name());

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
