import { expect } from 'vitest';
import { fault, seeds } from '../faults/fault.ts';
import { startRig } from '../faults/rig.ts';
import { backfillUnderLoad, may } from './load.ts';
import { administer, withPostgres } from './warehouse.ts';

/** Limits that managed Postgres services set on their roles. */
const limits = { statement_timeout: '30s', idle_in_transaction_session_timeout: '30s' } as const;

fault('P6', 'an owner without superuser, whose statements are limited', seeds(), { may }, (seed) =>
  withPostgres({}, async ({ part, users }) => {
    const url = await users.ensureDatabase('metersync', { createRoles: true });
    await administer(
      users.superuserUrl('postgres'),
      Object.entries(limits).map(([name, value]) => `alter role metersync_owner set ${name} = '${value}'`),
    );
    const [session] = await administer(url, [
      `select rolsuper, rolbypassrls, rolreplication, current_setting('statement_timeout') as statements
      from pg_roles where rolname = current_user`,
    ]);
    expect(session).toEqual({
      rolsuper: false,
      rolbypassrls: false,
      rolreplication: false,
      statements: limits.statement_timeout,
    });
    const rig = await startRig({ postgres: { part, databaseUrl: url } });
    try {
      return {
        injected: '',
        ...(await backfillUnderLoad(rig, seed, 'P6')),
      };
    } finally {
      await rig.stop();
    }
  }),
);
