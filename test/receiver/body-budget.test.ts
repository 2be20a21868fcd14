import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createBodyBudget, type Incoming, readAheadBytes } from '../../receiver/body-budget.ts';
import { ManualClock } from './manual-clock.ts';

const limits = { bytesMax: 1_000_000, bytesPerSecond: 10_000_000, bytesAtOnce: 200_000 };

/** A body that follows the budget and notes its calls. */
class Body implements Incoming {
  readonly name: number;
  reading = true;
  over = false;
  readonly #calls: string[];
  readonly #budget: ReturnType<typeof createBodyBudget>;

  constructor(name: number, calls: string[], budget: ReturnType<typeof createBodyBudget>) {
    this.name = name;
    this.#calls = calls;
    this.#budget = budget;
  }

  pause() {
    this.reading = false;
  }

  resume() {
    expect(this.over).toBe(false);
    this.reading = true;
    this.#calls.push(`resume ${this.name}`);
  }

  crowdOut() {
    this.#calls.push(`crowdOut ${this.name}`);
    this.end();
  }

  end() {
    this.over = true;
    this.#budget.release(this);
  }
}

function budgetOf() {
  const clock = new ManualClock();
  const budget = createBodyBudget(limits, clock);
  const calls: string[] = [];
  const bodies = Array.from({ length: 12 }, (_, name) => new Body(name, calls, budget));
  return { clock, budget, calls, bodies };
}

test('ends the body that began first to make room, however much and however recently it sent', async () => {
  const { clock, budget, calls, bodies } = budgetOf();
  const [first, second, third] = bodies as [Body, Body, Body];
  for (const body of [first, second, third]) {
    budget.take(body, 100_000);
    await clock.advance(1_000);
  }
  for (let n = 0; n < 7; n += 1) {
    budget.take(third, 100_000);
    await clock.advance(1_000);
  }
  budget.take(first, 1);
  expect(calls.filter((what) => what.startsWith('crowd'))).toEqual(['crowdOut 0']);
  expect(budget.held).toBe(900_000);
  budget.take(second, 150_000);
  expect(calls.filter((what) => what.startsWith('crowd'))).toEqual(['crowdOut 0', 'crowdOut 1']);
});

test('lets bodies wait beyond the pace, and resumes them in the order in which they began', async () => {
  const { clock, budget, calls, bodies } = budgetOf();
  const begun = bodies.slice(0, 4);
  for (const body of begun) budget.take(body, 60_000);
  for (const body of [...begun].reverse()) budget.take(body, 60_000);
  expect(begun.map(({ reading }) => reading)).toEqual([false, false, false, false]);
  await clock.advance(1_000);
  expect(calls).toEqual(['resume 0', 'resume 1', 'resume 2', 'resume 3']);
});

interface Step {
  readonly act: 'take' | 'end' | 'advance';
  readonly which: number;
  readonly size: number;
}

const steps = fc.array(
  fc.record<Step>({
    act: fc.constantFrom('take', 'take', 'take', 'end', 'advance'),
    which: fc.nat(11),
    size: fc.integer({ min: 1, max: readAheadBytes }),
  }),
  { maxLength: 150 },
);

test('keeps the limit, resumes the oldest body first, and leaves none waiting, for any order of events', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (sequence) => {
      const { clock, budget, calls, bodies } = budgetOf();
      let began: Body[] = [];
      let taken = 0;
      for (const { act, which, size } of sequence) {
        const body = bodies[which] as Body;
        calls.length = 0;
        if (act === 'advance') await clock.advance(size / 1_000);
        if (act === 'end' && began.includes(body)) body.end();
        if (act === 'take' && !body.over && body.reading) {
          if (!began.includes(body)) began.push(body);
          taken += size;
          budget.take(body, size);
        }
        const order = began.map(({ name }) => name);
        const out = calls.filter((what) => what.startsWith('crowdOut')).map((what) => Number(what.slice(9)));
        expect(out).toEqual(order.slice(0, out.length));
        const resumed = calls
          .filter((what) => what.startsWith('resume'))
          .map((what) => Number(what.slice(7)));
        expect(resumed).toEqual(order.filter((name) => resumed.includes(name)));
        began = began.filter(({ over }) => !over);
        expect(budget.held).toBeLessThanOrEqual(limits.bytesMax);
        // Each body may overdraw once by what it had read when the pace was reached, and again for each
        // grant.
        const paced = limits.bytesAtOnce + (clock.now() / 1_000) * limits.bytesPerSecond;
        expect(taken).toBeLessThanOrEqual(2 * paced + bodies.length * readAheadBytes);
      }
      await clock.advance(1_000);
      expect(began.every(({ reading }) => reading)).toBe(true);
      for (const body of began) body.end();
      expect(budget.held).toBe(0);
    }),
    { numRuns: 300 },
  );
});
