import { ApplicationFailure, Context } from '@temporalio/activity';
import { sql } from 'drizzle-orm';
import { describe, expect, onTestFinished, test } from 'vitest';
import { mapFailures } from '../../activities/map-failures.ts';
import { Failure, type FailureCode, failureTypes } from '../../contract/failures.ts';
import { activityEnvironment } from '../support/activities.ts';
import { createWarehouse } from '../support/warehouse.ts';

/** What Temporal is told when an activity throws. */
async function toldBy(work: () => Promise<unknown>, final?: { giveUp: boolean }): Promise<unknown> {
  const activity = mapFailures(work, ...(final === undefined ? [] : [final]));
  return await activityEnvironment()
    .run(activity, undefined)
    .catch((error: unknown) => error);
}

describe('what Temporal is told of a failure', () => {
  test.each(Object.keys(failureTypes) as FailureCode[])(
    '%s: its code, and whether to try again',
    async (code) => {
      const told = await toldBy(async () => {
        throw new Failure(code, 'in words');
      });
      expect(told).toBeInstanceOf(ApplicationFailure);
      const nonRetryable = failureTypes[code].action !== 'retry';
      expect(told).toMatchObject({ type: code, message: 'in words', nonRetryable });
    },
  );

  test('when the service asked to be left alone until, that is when it is tried again', async () => {
    const told = await toldBy(async () => {
      throw new Failure('SERVICE_BUSY', 'later', { retryAfterMs: 7_000 });
    });
    expect(told).toMatchObject({ nextRetryDelay: 7_000 });
  });

  test('waiting for a turn is no trouble that a log tells of', async () => {
    const told = await toldBy(async () => {
      throw new Failure('COMPANY_BUSY', 'later');
    });
    expect(told).toMatchObject({ category: 'BENIGN' });
  });

  test('work that must not be given up is tried again whatever the failure', async () => {
    const told = await toldBy(
      async () => {
        throw new Failure('WAREHOUSE_VALUE_REFUSED', 'no');
      },
      { giveUp: false },
    );
    expect(told).toMatchObject({ type: 'WAREHOUSE_VALUE_REFUSED', nonRetryable: false });
  });

  test.each([
    ['a value that Postgres refuses', sql`select 'x'::uuid`, 'WAREHOUSE_VALUE_REFUSED'],
    ['a server that stops us', sql`select pg_terminate_backend(pg_backend_pid())`, 'WAREHOUSE_UNAVAILABLE'],
    [
      'a statement that is cancelled',
      sql`select pg_cancel_backend(pg_backend_pid())`,
      'WAREHOUSE_UNAVAILABLE',
    ],
  ] as const)('%s', async (_, statement, code) => {
    const warehouse = await createWarehouse();
    onTestFinished(() => warehouse.drop());
    const told = await toldBy(() => warehouse.db.execute(statement));
    expect(told).toMatchObject({ type: code, nonRetryable: code === 'WAREHOUSE_VALUE_REFUSED' });
  });

  test('a mistake of ours is told as it is, and is not taken for trouble of Postgres', async () => {
    const warehouse = await createWarehouse();
    onTestFinished(() => warehouse.drop());
    expect(await toldBy(() => warehouse.db.execute(sql`select * from nowhere`))).not.toBeInstanceOf(
      ApplicationFailure,
    );
    const mistake = new TypeError('undefined is not a function');
    expect(
      await toldBy(async () => {
        throw mistake;
      }),
    ).toBe(mistake);
  });

  test('cancelled work says so, whatever it failed with on its way out', async () => {
    const environment = activityEnvironment();
    const activity = mapFailures(async () => {
      environment.cancel('CANCELLED');
      await Context.current().cancelled.catch(() => {});
      throw new Failure('SERVICE_UNREACHABLE', 'the request was aborted');
    });
    await expect(environment.run(activity, undefined)).rejects.toThrow('CANCELLED');
  });
});
