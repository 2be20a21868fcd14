import { ApplicationFailure, Context } from '@temporalio/activity';
import { sql } from 'drizzle-orm';
import { describe, expect, onTestFinished, test } from 'vitest';
import { mapFailures } from '../../activities/map-failures.ts';
import { Failure, type FailureCode, failureTypes } from '../../contract/failures.ts';
import { activityEnvironment } from '../support/activities.ts';
import { createWarehouse } from '../support/warehouse.ts';

/** Returns the failure that Temporal gets when an activity throws. */
async function failureOf(work: () => Promise<unknown>, final?: { giveUp: boolean }): Promise<unknown> {
  const activity = mapFailures(work, ...(final === undefined ? [] : [final]));
  return await activityEnvironment()
    .run(activity, undefined)
    .catch((error: unknown) => error);
}

describe('the failure that Temporal gets', () => {
  test.each(Object.keys(failureTypes) as FailureCode[])(
    '%s keeps its code, and is retryable as the catalogue says',
    async (code) => {
      const failure = await failureOf(async () => {
        throw new Failure(code, 'in words');
      });
      expect(failure).toBeInstanceOf(ApplicationFailure);
      const nonRetryable = failureTypes[code].action !== 'retry';
      expect(failure).toMatchObject({ type: code, message: 'in words', nonRetryable });
    },
  );

  test('Retry-After becomes nextRetryDelay', async () => {
    const failure = await failureOf(async () => {
      throw new Failure('SERVICE_BUSY', 'later', { retryAfterMs: 7_000 });
    });
    expect(failure).toMatchObject({ nextRetryDelay: 7_000 });
  });

  test('waiting for a turn is benign', async () => {
    const failure = await failureOf(async () => {
      throw new Failure('COMPANY_BUSY', 'later');
    });
    expect(failure).toMatchObject({ category: 'BENIGN' });
  });

  test('work that must not be given up stays retryable after any failure', async () => {
    const failure = await failureOf(
      async () => {
        throw new Failure('WAREHOUSE_VALUE_REFUSED', 'no');
      },
      { giveUp: false },
    );
    expect(failure).toMatchObject({ type: 'WAREHOUSE_VALUE_REFUSED', nonRetryable: false });
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
    const failure = await failureOf(() => warehouse.db.execute(statement));
    expect(failure).toMatchObject({ type: code, nonRetryable: code === 'WAREHOUSE_VALUE_REFUSED' });
  });

  test('a defect is thrown unchanged, not as an outage of Postgres', async () => {
    const warehouse = await createWarehouse();
    onTestFinished(() => warehouse.drop());
    expect(await failureOf(() => warehouse.db.execute(sql`select * from nowhere`))).not.toBeInstanceOf(
      ApplicationFailure,
    );
    const mistake = new TypeError('undefined is not a function');
    expect(
      await failureOf(async () => {
        throw mistake;
      }),
    ).toBe(mistake);
  });

  test('cancelled work fails as cancelled, even if it throws another failure', async () => {
    const environment = activityEnvironment();
    const activity = mapFailures(async () => {
      environment.cancel('CANCELLED');
      await Context.current().cancelled.catch(() => {});
      throw new Failure('SERVICE_UNREACHABLE', 'the request was aborted');
    });
    await expect(environment.run(activity, undefined)).rejects.toThrow('CANCELLED');
  });
});
