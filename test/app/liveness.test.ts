import { describe, expect, test } from 'vitest';
import { pollsOf, watchPolls } from '../../app/process/liveness.ts';

const queue = 'metersync-events';
const minute = 60_000;

/** Writes the counts of long polls as Temporal's native library does. */
const polls = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(
      ([operation, count]) =>
        `temporal_long_request_total{namespace="default",operation="${operation}",service_name="temporal-core-sdk",task_queue="${queue}"} ${count}\n`,
    )
    .join('');

function watched() {
  const world = { now: 0, text: polls({ PollActivityTaskQueue: 5 }) as string | undefined, runs: true };
  const liveness = watchPolls({
    workers: [{ queue, runs: () => world.runs }],
    core: { read: async () => world.text },
    now: () => world.now,
  });
  const livesAt = async (ms: number): Promise<boolean | undefined> => {
    world.now = ms;
    return (await liveness.queues())[0]?.polls;
  };
  return { world, livesAt };
}

describe('a worker', () => {
  test('is alive while its polls increase, however little', async () => {
    const { world, livesAt } = watched();
    for (let at = 1; at <= 20; at++) {
      world.text = polls({ PollActivityTaskQueue: 5 + at });
      expect(await livesAt(at * minute)).toBe(true);
    }
  });

  test('is dead within 4 minutes after its last poll', async () => {
    const { world, livesAt } = watched();
    expect(await livesAt(10)).toBe(true);
    world.text = polls({ PollActivityTaskQueue: 6, PollWorkflowTaskQueue: 1 });
    expect(await livesAt(minute)).toBe(true);
    expect(await livesAt(3.9 * minute)).toBe(true);
    expect(await livesAt(4.1 * minute)).toBe(false);
    world.text = polls({ PollActivityTaskQueue: 6, PollWorkflowTaskQueue: 2 });
    expect(await livesAt(5 * minute)).toBe(true);
  });

  test('is alive if nobody asked about it for a long time, because only observed polls count', async () => {
    const { world, livesAt } = watched();
    expect(await livesAt(10)).toBe(true);
    world.text = polls({ PollActivityTaskQueue: 70 });
    expect(await livesAt(60 * minute)).toBe(true);
  });

  test('is alive while the counts cannot be read, and for some minutes after that', async () => {
    const { world, livesAt } = watched();
    expect(await livesAt(10)).toBe(true);
    world.text = undefined;
    expect(await livesAt(30 * minute)).toBe(true);
    world.text = polls({ PollActivityTaskQueue: 5 });
    expect(await livesAt(31 * minute)).toBe(true);
    expect(await livesAt(35 * minute)).toBe(false);
  });

  test('is alive while no slot for an activity is free', async () => {
    const { world, livesAt } = watched();
    const slots = (free: number) =>
      `temporal_worker_task_slots_available{task_queue="${queue}",worker_type="ActivityWorker"} ${free}\n`;
    world.text = polls({ PollActivityTaskQueue: 5 }) + slots(0);
    expect(await livesAt(10)).toBe(true);
    expect(await livesAt(60 * minute)).toBe(true);
    world.text = polls({ PollActivityTaskQueue: 5 }) + slots(1);
    expect(await livesAt(62 * minute)).toBe(true);
    expect(await livesAt(64 * minute)).toBe(false);
  });

  test('is dead at once when it has stopped', async () => {
    const { world, livesAt } = watched();
    world.runs = false;
    expect(await livesAt(10)).toBe(false);
  });
});

test('adds up the polls of one queue over operations and status', () => {
  const other = polls({ PollActivityTaskQueue: 40 }).replace(queue, 'metersync-checks');
  const failures = polls({ PollActivityTaskQueue: 9 }).replace('_request_', '_request_failure_');
  expect(
    pollsOf(polls({ PollActivityTaskQueue: 3, PollWorkflowTaskQueue: 4 }) + other + failures, queue),
  ).toBe(7);
});
