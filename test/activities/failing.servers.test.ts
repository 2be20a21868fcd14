import { ApplicationFailure, Context } from '@temporalio/activity';
import { sql } from 'drizzle-orm';
import { describe, expect, onTestFinished, test } from 'vitest';
import { noteCursor } from '../../activities/activity-context.ts';
import { mapFailures } from '../../activities/map-failures.ts';
import { Failure, type FailureCode, failureTypes } from '../../contract/failures.ts';
import { taskQueues, workflowNames } from '../../contract/names.ts';
import { activityPolicy } from '../../contract/retry-policy.ts';
import { activityEnvironment } from '../support/activities.ts';
import { withStubs } from '../support/stub-worker.ts';
import { createWarehouse } from '../support/warehouse.ts';

/** Returns the failure that Temporal gets when an activity throws. */
async function failureOf(
  work: () => Promise<unknown>,
  final?: { giveUp: boolean },
  environment = activityEnvironment(),
): Promise<unknown> {
  const activity = mapFailures(work, ...(final === undefined ? [] : [final]));
  return await environment.run(activity, undefined).catch((error: unknown) => error);
}

describe('the failure that Temporal gets', () => {
  test.each(Object.keys(failureTypes) as FailureCode[])(
    '%s keeps its code, and is retryable if the catalogue says so',
    async (code) => {
      const failure = await failureOf(async () => {
        throw new Failure(code, 'in words');
      });
      expect(failure).toBeInstanceOf(ApplicationFailure);
      const nonRetryable = failureTypes[code].action !== 'retry';
      expect(failure).toMatchObject({ type: code, message: 'in words', nonRetryable });
    },
  );

  test.each([
    [7_000, 1, 7_000],
    // The wait of the policy begins with 2 s and doubles up to 2 minutes.
    [7_000, 3, undefined],
    [119_000, 30, undefined],
    [600_000, 30, 600_000],
    [0, 1, undefined],
    [undefined, 1, undefined],
  ])(
    'Retry-After of %s ms after attempt %i makes nextRetryDelay %s',
    async (retryAfterMs, attempt, delay) => {
      const failure = await failureOf(
        async () => {
          throw new Failure('SERVICE_BUSY', 'later', retryAfterMs === undefined ? {} : { retryAfterMs });
        },
        undefined,
        activityEnvironment(undefined, attempt, activityPolicy.reading.retry),
      );
      expect(failure).toHaveProperty('nextRetryDelay', delay);
    },
  );

  test('is retried by Temporal with the policy of the activity if the service asks for a wait of zero seconds', async () => {
    const policies: unknown[] = [];
    const dropPayloads = mapFailures(async () => {
      policies.push(Context.current().info.retryPolicy);
      if (policies.length === 1) throw new Failure('SERVICE_ERROR', 'answered 503', { retryAfterMs: 0 });
    });
    const taskQueue = taskQueues.backfill;
    await withStubs(taskQueue, { dropPayloads }, (client) =>
      client.workflow.execute(workflowNames.dropPayloads, { workflowId: 'retried', taskQueue }),
    );
    const policy = expect.objectContaining(activityPolicy.recurring.retry);
    expect(policies).toEqual([policy, policy]);
  });

  test('waits like after a first try if the attempt got further than those before', async () => {
    const failure = await failureOf(
      async () => {
        noteCursor({ page: 2 });
        throw new Failure('SERVICE_ERROR', 'not now');
      },
      undefined,
      activityEnvironment({ page: 1 }, 30, activityPolicy.reading.retry),
    );
    expect(failure).toMatchObject({ nextRetryDelay: 2_000 });
  });
  test('stays retryable after any failure if the work must not be given up', async () => {
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
    ['an ended session', sql`select pg_terminate_backend(pg_backend_pid())`, 'WAREHOUSE_UNAVAILABLE'],
    [
      'a statement that is cancelled',
      sql`select pg_cancel_backend(pg_backend_pid())`,
      'WAREHOUSE_UNAVAILABLE',
    ],
  ] as const)('has the code for %s', async (_, statement, code) => {
    const warehouse = await createWarehouse();
    onTestFinished(() => warehouse.drop());
    const failure = await failureOf(() => warehouse.db.execute(statement));
    expect(failure).toMatchObject({ type: code, nonRetryable: code === 'WAREHOUSE_VALUE_REFUSED' });
  });

  test('is the unchanged error of a defect, not an outage of Postgres', async () => {
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

  test('is a cancellation if the work was cancelled, even if it throws another failure', async () => {
    const environment = activityEnvironment();
    const activity = mapFailures(async () => {
      environment.cancel('CANCELLED');
      await Context.current().cancelled.catch(() => {});
      throw new Failure('SERVICE_UNREACHABLE', 'the request was aborted');
    });
    await expect(environment.run(activity, undefined)).rejects.toThrow('CANCELLED');
  });
});
