import { execFile } from 'node:child_process';
import { chmod, cp, mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { startBackfill } from '../../app/backfill.ts';
import { workflowIds } from '../../contract/names.ts';
import type { PostgresRelease } from '../../embedded/postgres.ts';
import { childEnvironment } from '../../embedded/process.ts';
import type { AuditReport } from '../../operations/audit/audit.ts';
import { type Fault, fault, say } from '../faults/fault.ts';
import { readEffects } from '../faults/ledger.ts';
import { seedOf } from '../faults/plan.ts';
import type { PostgresPart } from '../faults/postgres-part.ts';
import type { Rig } from '../faults/rig.ts';
import { settle } from '../faults/verdict.ts';
import { temporaryFolder } from '../support/folder.ts';
import { until } from '../support/poll.ts';
import { configurePostgres } from '../support/stack.ts';
import { findRelease, majors } from './releases.ts';
import { administer, may, withPostgres } from './warehouse.ts';

/** The number of events that arrive while no worker runs. */
const eventsMeanwhile = 20;

/** How a warehouse is backed up and restored. */
interface Restoring {
  backUp(): Promise<unknown>;
  restore(): Promise<unknown>;
}

type Around = NonNullable<Fault<Restoring>['around']>;

/** Surrounds a fault with a Postgres of the same version as the backup programs, and a folder for the backup. */
const restoring =
  (
    make: (postgres: PostgresPart, folder: string) => Promise<Restoring>,
    settingsIn: (folder: string) => Promise<readonly string[]> = async () => [],
  ): Around =>
  async (work) => {
    const release = await releaseOfClients();
    return await withFolder(async (folder) =>
      withPostgres({ release, settings: await settingsIn(folder) }, async (postgres) => {
        // Postgres may already archive while it creates the database, so the folders are its own before that.
        const made = await make(postgres, folder);
        const databaseUrl = await postgres.users.ensureDatabase('metersync', { createRoles: true });
        return await work({ postgres: { part: postgres.part, databaseUrl } }, made);
      }),
    );
  };

const byDump = restoring(async (postgres, folder) => {
  const file = join(folder, 'warehouse.dump');
  const run = clientsOf(postgres);
  return {
    backUp: () => run('pg_dump', ['--format=custom', `--file=${file}`, 'metersync']),
    restore: async () => {
      await run('dropdb', ['--force', 'metersync']);
      await run('pg_restore', ['--create', '--dbname=postgres', '--exit-on-error', file]);
    },
  };
});

const archiveIn = (folder: string) => join(folder, 'archive');

const toMoment = restoring(
  async (postgres, folder) => {
    const [base, archive] = [join(folder, 'base'), archiveIn(folder)];
    await giveTo(postgres, archive);
    // The backup reads the whole data folder, including metersync's file with the superuser's password.
    await giveTo(postgres, postgres.data);
    const superuser = postgres.users.superuserUrl('postgres');
    let moment = '';
    return {
      backUp: async () => {
        await clientsOf(postgres)('pg_basebackup', [`--pgdata=${base}`, '--checkpoint=fast']);
        // Transactions that are committed after the backup are restored from the archive.
        await delay(2_000);
        const [now] = await administer<{ moment: string }>(superuser, ['select now()::text as moment']);
        moment = now?.moment ?? '';
      },
      restore: async () => {
        await archived(superuser);
        await postgres.part.kill();
        await rename(postgres.data, `${postgres.data}.lost`);
        await cp(base, postgres.data, { recursive: true, verbatimSymlinks: true });
        await chmod(postgres.data, 0o700);
        await configurePostgres(postgres.data, [
          `restore_command = 'cp ${archive}/%f %p'`,
          `recovery_target_time = '${moment}'`,
          'recovery_target_action = promote',
        ]);
        await writeFile(join(postgres.data, 'recovery.signal'), '');
        await giveTo(postgres, postgres.data);
        await postgres.part.start();
        await until('it has recovered', async () => {
          const [found] = await administer<{ over: boolean }>(superuser, [
            'select not pg_is_in_recovery() as over',
          ]);
          return found?.over ?? false;
        });
      },
    };
  },
  async (folder) => {
    const archive = archiveIn(folder);
    await mkdir(archive);
    return ['archive_mode = on', `archive_command = 'test ! -f ${archive}/%f && cp %p ${archive}/%f'`];
  },
);

/** Each way to restore, and whether a backfill is running when the worker is killed. */
const rows: readonly [name: string, title: string, around: Around, amidBackfill: boolean][] = [
  ['P9', 'the warehouse is restored from a dump under load', byDump, false],
  ['P10', 'Postgres is restored to a moment under load', toMoment, true],
];

for (const [name, title, around, amidBackfill] of rows)
  fault<Restoring>({
    name,
    title,
    eachSeed: true,
    // No event arrives meanwhile, waiting events name gone records, and audits find what was lost.
    alarms: { may: [...may, 'EventsMissing', 'Silent', 'AuditDiffers'] },
    around,
    backfill: 'before',
    // All changes between the backup and its restore are lost. Then the steps of the guide follow.
    strike: async ({ rig, made, seed, random, load }) => {
      const { service, client } = rig;
      await delay(random.int(1_000, 2_000));
      await made.backUp();
      // All changes that are applied from here on are lost. No later change of these records repairs them.
      await load.end(10);
      await service.fault({ kind: 'latency', ms: [100, 200] });
      const open = amidBackfill ? await startBackfill(client) : undefined;
      await delay(random.int(500, 3_000));
      rig.harm();
      await rig.parts.worker.kill();
      await service.clearFaults();
      const before = await journalled(rig);
      await made.restore();
      const known = new Set(await journalled(rig));
      const lost = before.filter((id) => !known.has(id)).length;
      say(`${name}, seed ${seed}: the restored journal lacks ${lost} events`);
      expect(lost).toBeGreaterThan(100);
      expect(await rig.run(['migrate'])).toMatchObject({ status: 0 });
      const differences = await differ(rig);
      expect(differences).toBeGreaterThan(0);
      await service.random(eventsMeanwhile, seedOf(seed, name));
      await rig.parts.worker.start();
      if (open !== undefined) await client.workflow.getHandle(workflowIds.backfill(open)).result();
      await settle(rig, { restored: true });
      const left = await differ(rig);
      // Events alone do not repair changes that were lost, but a backfill that was open may.
      if (!amidBackfill) expect(left).toBeGreaterThan(0);
      expect(await rig.backfill()).toBe('complete');
      return `${lost} events lost, ${differences} differences; ${left} before the new backfill`;
    },
    verdict: { restored: true },
  });

/** Counts the differences between the service and the warehouse. */
async function differ(rig: Rig): Promise<number> {
  return (JSON.parse((await rig.run(['audit', '--json'])).stdout) as AuditReport).differences;
}

async function journalled(rig: Rig): Promise<string[]> {
  return (await readEffects(rig.warehouse)).map(({ id }) => id);
}

/** Waits until all transactions that are committed so far are in the archive. */
async function archived(superuser: string): Promise<void> {
  const [last] = await administer<{ file: string }>(superuser, [
    'select pg_walfile_name(pg_switch_wal()) as file',
  ]);
  await until('the archive has it', async () => {
    const [found] = await administer<{ there: boolean }>(superuser, [
      `select last_archived_wal >= '${last?.file}' as there from pg_stat_archiver`,
    ]);
    return found?.there ?? false;
  });
}

/** Finds the Postgres of the same version as the backup programs on the path. */
async function releaseOfClients(): Promise<PostgresRelease | undefined> {
  const printed = await promisify(execFile)('pg_dump', ['--version']).catch((error: unknown) => {
    throw new Error(
      'pg_dump, pg_restore and pg_basebackup are needed: apt-get install postgresql-client (Debian)',
      {
        cause: error,
      },
    );
  });
  const [, version] = / (\d+)\./.exec(printed.stdout) ?? [];
  const major = majors.find((one) => one === Number(version));
  if (major === undefined)
    throw new Error(`pg_dump is of version ${version}, and none of ${majors.join(', ')}`);
  return await findRelease(major);
}

/** Returns a function that runs a client program as the superuser of this Postgres. */
function clientsOf({ users, port }: PostgresPart) {
  const { username, password } = new URL(users.superuserUrl('postgres'));
  const env = childEnvironment({
    PGHOST: '127.0.0.1',
    PGPORT: String(port),
    PGUSER: decodeURIComponent(username),
    PGPASSWORD: decodeURIComponent(password),
  });
  return (program: string, args: readonly string[]) => promisify(execFile)(program, args, { env });
}

/** Gives a folder to the account of Postgres if the test runs as root. */
async function giveTo({ account }: PostgresPart, folder: string): Promise<void> {
  if (account !== undefined)
    await promisify(execFile)('chown', ['-R', `${account.uid}:${account.gid}`, folder]);
}

async function withFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await temporaryFolder();
  try {
    // The account of Postgres needs access to the content of the folder.
    await chmod(folder.path, 0o711);
    return await work(folder.path);
  } finally {
    await folder.remove();
  }
}
