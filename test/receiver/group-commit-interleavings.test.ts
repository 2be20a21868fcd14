import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { DeliveredEvent } from '../../contract/event.ts';
import { limits } from '../../contract/limits.ts';
import { type CommitResult, createGroupCommit } from '../../receiver/group-commit.ts';
import type { StartRequest } from '../../receiver/starts.ts';
import { cases } from '../support/cases.ts';
import { RecordingLog } from './listening.ts';
import { ManualClock } from './manual-clock.ts';

/** Outcomes of an attempt. One that fails or hangs may have taken effect, so that a later one returns. */
const outcomes = ['returns', 'fails', 'hangs'] as const;

/** Temporal from the receiver's side: workflows by id, behind a network with the given outcomes. */
class Store {
  readonly membersOf = new Map<string, string>();
  /** Ids of events for which a start of their group has returned. */
  readonly returned = new Set<string>();

  async start({ workflowId, group }: StartRequest, outcome: (typeof outcomes)[number]): Promise<void> {
    const ids = group.events.map(({ id }) => id);
    expect(new Set(ids).size, 'an event twice in one group').toBe(ids.length);
    expect(ids.length).toBeLessThanOrEqual(limits.groupEventsMax);
    const members = ids.join();
    expect(this.membersOf.get(workflowId) ?? members, 'other members under the same id').toBe(members);
    this.membersOf.set(workflowId, members);
    if (outcome === 'fails') throw new Error('14 UNAVAILABLE');
    if (outcome === 'hangs') await new Promise(() => {});
    for (const id of ids) this.returned.add(id);
  }
}

interface Deliverer {
  accept(event: DeliveredEvent): Promise<CommitResult>;
  clock: ManualClock;
}

/** Makes deliveries, some of the same id, with time passing between them. */
function deliveries(
  steps: readonly { message: number; waitMs: number }[],
  { accept, clock }: Deliverer,
  onAnswer: (id: string, answer: CommitResult, afterMs: number) => void,
) {
  return steps.map(({ message, waitMs }, n) => ({
    label: `delivery ${n} of message ${message}, then ${waitMs} ms`,
    builder: async () => {
      const id = `msg_${message}`;
      const from = clock.now();
      void accept({
        id,
        timestamp: 1_614_265_330,
        receivedAt: '2021-02-25T15:02:10.000Z',
        body: '{}',
      }).then((answer) => onAnswer(id, answer, clock.now() - from));
      await clock.advance(waitMs);
    },
  }));
}

const step = fc.record({
  message: fc.nat(7),
  waitMs: fc.constantFrom(0, 0, 0, 1, 120, 900, 3_000, 8_000),
});

test('an event is acknowledged only after a start of its group has returned, in any order of outcomes', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.array(step, { minLength: 1, maxLength: 14 }),
      fc.infiniteStream(fc.constantFrom(...outcomes, 'returns')),
      fc.integer({ min: 1, max: 3 }),
      async (scheduler, steps, outcomeStream, groupStartsInFlight) => {
        const clock = new ManualClock();
        const store = new Store();
        const violations: unknown[] = [];
        const commit = createGroupCommit({
          clock,
          log: new RecordingLog(),
          limits: { ...limits, groupStartsInFlight, queueEventsMax: 5 },
          start: async (request) => {
            const outcome = outcomeStream.next().value as (typeof outcomes)[number];
            await scheduler.schedule(Promise.resolve(), `start of ${request.workflowId} ${outcome}`);
            await store.start(request, outcome).catch((error) => {
              if (error.name === 'AssertionError') violations.push(error);
              throw error;
            });
          },
        });
        const answers: CommitResult[] = [];
        const onAnswer = (id: string, answer: CommitResult, afterMs: number) => {
          answers.push(answer);
          if (answer === 'durable' && !store.returned.has(id))
            violations.push(`${id} was acknowledged too early`);
          if (afterMs > limits.answerWithinMs) violations.push(`${id} waited ${afterMs} ms`);
        };
        const deliverer = { accept: (event: DeliveredEvent) => commit.accept(event), clock };
        scheduler.scheduleSequence(deliveries(steps, deliverer, onAnswer));
        await scheduler.waitIdle();
        const drained = commit.drain();
        // Retries go on until the last deadline; the clock stops at every pause between them.
        for (let passed = 0; passed < 2 * limits.answerWithinMs; passed += 100) {
          await clock.advance(100);
          await scheduler.waitIdle();
        }
        await drained;
        expect(violations).toEqual([]);
        expect(answers).toHaveLength(steps.length);
        expect(commit.waiting).toEqual({ events: 0, bytes: 0 });
      },
    ),
    { numRuns: cases(150, 300) },
  );
});
