import { expect } from 'vitest';
import { fault } from '../faults/fault.ts';
import { administer, may, withPostgres } from './warehouse.ts';

/** Limits that managed Postgres services set on their roles. */
const limits = { statement_timeout: '30s', idle_in_transaction_session_timeout: '30s' } as const;

fault({
  name: 'P6',
  title: 'an owner without superuser, whose statements are limited',
  eachSeed: true,
  alarms: { may },
  around: (work) =>
    withPostgres({}, async ({ part, users }) => {
      const databaseUrl = await users.ensureDatabase('metersync', { createRoles: true });
      await administer(
        users.superuserUrl('postgres'),
        Object.entries(limits).map(([name, value]) => `alter role metersync_owner set ${name} = '${value}'`),
      );
      const [session] = await administer(databaseUrl, [
        `select rolsuper, rolbypassrls, rolreplication, current_setting('statement_timeout') as statements
        from pg_roles where rolname = current_user`,
      ]);
      const none = { rolsuper: false, rolbypassrls: false, rolreplication: false };
      expect(session).toEqual({ ...none, statements: limits.statement_timeout });
      return await work({ postgres: { part, databaseUrl } }, undefined);
    }),
  backfill: 'during',
  loadSeconds: 20,
  strike: async () => {},
});
