import { execFile } from 'node:child_process';
import { chmod, chown, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { prepareFolder } from '../../embedded/folder.ts';
import type { Check } from '../../operations/doctor/check.ts';
import { fault, say } from '../faults/fault.ts';
import type { Part } from '../faults/part.ts';
import { type PostgresPart, preparePart } from '../faults/postgres-part.ts';
import { type CuttingProxy, startProxy } from '../faults/proxy.ts';
import type { Rig } from '../faults/rig.ts';
import { runCommand } from '../support/command.ts';
import { temporaryFolder } from '../support/folder.ts';
import { until } from '../support/poll.ts';
import { freePort } from '../support/port.ts';
import { configurePostgres } from '../support/stack.ts';
import { administer, may, withPostgres } from './warehouse.ts';

interface Standby {
  readonly primary: PostgresPart;
  readonly standby: PostgresPart;
  /** This is like the host name that a managed service moves to the new primary. */
  readonly name: CuttingProxy;
  /** Whether the standby has taken over, so that the primary must not start again. */
  promoted: boolean;
}

fault<Standby>({
  name: 'P7',
  title: 'the primary is killed under load, its standby promoted',
  eachSeed: true,
  alarms: { may },
  around: (work) =>
    withPostgres({}, async (primary) => {
      const url = new URL(await primary.users.ensureDatabase('metersync', { createRoles: true }));
      const folder = await temporaryFolder();
      const standby = await startStandby(primary, folder.path);
      const name = await startProxy(addressOf(primary));
      url.host = name.address;
      const made: Standby = { primary, standby, name, promoted: false };
      const part: Part = {
        ...primary.part,
        get pid() {
          return primary.part.pid;
        },
        get kills() {
          return primary.part.kills;
        },
        start: async () => {
          if (!made.promoted) await primary.part.start();
        },
      };
      try {
        return await work({ postgres: { part, databaseUrl: url.href } }, made);
      } finally {
        await name.close();
        await standby.part.stop('SIGQUIT');
        await folder.remove();
      }
    }),
  prepare: (rig, { standby }) => saidByDoctor(rig, standby),
  backfill: 'during',
  loadSeconds: 20,
  strike: async ({ rig, made, random }) => {
    const { primary, standby, name } = made;
    await delay(random.int(2_000, 5_000));
    rig.harm();
    made.promoted = true;
    await primary.part.kill();
    // For a while the name leads to the standby, which still refuses writes.
    name.moveTo(addressOf(standby));
    await delay(random.int(500, 2_000));
    await administer(standby.users.superuserUrl('postgres'), ['select pg_promote()']);
    say('P7: the standby is promoted');
  },
  check: (_figures, rig) => expect(rig.parts.worker.endedByItself).toEqual([]),
});

const addressOf = ({ port }: PostgresPart): string => `127.0.0.1:${port}`;

/** Starts a standby with the primary's data. From then on each commit waits until the standby has it. */
async function startStandby(primary: PostgresPart, folder: string): Promise<PostgresPart> {
  const superuser = primary.users.superuserUrl('postgres');
  const { username, password } = new URL(superuser);
  await primary.part.stop('SIGINT');
  prepareFolder(folder);
  // The account of Postgres needs access to the folder, as for new data.
  await chmod(folder, 0o711);
  const data = join(folder, 'postgres');
  await promisify(execFile)('cp', ['-a', primary.data, data]);
  await primary.part.start();
  const way = `host=127.0.0.1 port=${primary.port} user=${username} password=${password} application_name=standby`;
  await configurePostgres(data, [`primary_conninfo = '${way}'`]);
  const signal = join(data, 'standby.signal');
  await writeFile(signal, '');
  const { account } = primary;
  if (account !== undefined) await chown(signal, account.uid, account.gid);
  const standby = await preparePart(folder, await freePort());
  await standby.part.start();
  await administer(superuser, [
    `alter system set synchronous_standby_names = 'standby'`,
    'select pg_reload_conf()',
  ]);
  await until('commits wait for the standby', async () => {
    const [replica] = await administer<{ sync_state: string }>(superuser, [
      'select sync_state from pg_stat_replication',
    ]);
    return replica?.sync_state === 'sync';
  });
  return standby;
}

/** Checks that the doctor says that the standby does not accept writes. */
async function saidByDoctor(rig: Rig, standby: PostgresPart): Promise<void> {
  const atStandby = new URL(rig.env.DATABASE_URL ?? '');
  atStandby.host = addressOf(standby);
  const env = { ...rig.env, LOG_LEVEL: 'error', DATABASE_URL: atStandby.href };
  const { stdout } = await runCommand(['doctor', '--json'], { env });
  const { checks } = JSON.parse(stdout) as { checks: Check[] };
  expect(checks).toContainEqual(
    expect.objectContaining({ name: 'warehouse', state: 'fail', saw: expect.stringContaining('standby') }),
  );
}
