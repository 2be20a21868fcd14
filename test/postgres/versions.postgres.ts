import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, expect } from 'vitest';
import { fault, say } from '../faults/fault.ts';
import type { PostgresPart } from '../faults/postgres-part.ts';
import { settingsForTests } from '../support/stack.ts';
import { findRelease, majors } from './releases.ts';
import { administer, may, migratedSchema, withPostgres } from './warehouse.ts';

let newest: readonly string[] = [];

beforeAll(async () => {
  newest = await withPostgres({}, migratedSchema);
});

for (const [index, major] of majors.entries())
  fault<PostgresPart & { readonly version: string }>({
    name: `P${index + 1}`,
    title: `Postgres ${major}: the schema of 18, tests, a kill under load`,
    eachSeed: true,
    alarms: { may },
    around: async (work) => {
      const release = await findRelease(major);
      const version = await withPostgres({ release, settings: settingsForTests }, async (postgres) => {
        expect(await migratedSchema(postgres)).toEqual(newest);
        return await runTests(postgres);
      });
      return await withPostgres({ release }, async (postgres) => {
        await postgres.users.ensureDatabase('metersync');
        const databaseUrl = postgres.users.superuserUrl('metersync');
        return await work({ postgres: { part: postgres.part, databaseUrl } }, { ...postgres, version });
      });
    },
    backfill: 'during',
    loadSeconds: 20,
    strike: async ({ rig, made: { part, version }, random }) => {
      await delay(random.int(1_000, 3_000));
      rig.harm();
      await part.kill();
      await part.start();
      return `on ${version}`;
    },
  });

/** Runs the tests of tables and views on this Postgres, and returns its version. */
async function runTests({ users }: PostgresPart): Promise<string> {
  const url = users.superuserUrl('postgres');
  const [server] = await administer<{ version: string }>(url, [
    `select current_setting('server_version') as version`,
  ]);
  const version = server?.version ?? '';
  say(`Postgres ${version}: test/db, test/analytics`);
  const vitest = spawn(
    process.execPath,
    // One file at a time: when another file changes the catalogue, sessions read it again and make new plans,
    // which the tests of costs would count.
    ['node_modules/vitest/vitest.mjs', 'run', '--maxWorkers=1', 'test/db/', 'test/analytics/'],
    {
      cwd: resolve(import.meta.dirname, '../..'),
      env: { ...outside(process.env), TEST_POSTGRES_URL: url },
      stdio: ['ignore', 'inherit', 'inherit'],
    },
  );
  const [status] = await once(vitest, 'exit');
  expect({ version, status }).toEqual({ version, status: 0 });
  return version;
}

/** Leaves out the variables that the Vitest of this run has set. */
function outside(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !/^(VITEST|VITE_|TEST$)/.test(name)));
}
