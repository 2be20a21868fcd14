import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Incoming, type SharedMemory, shareMemory } from '../../receiver/bounds.ts';

const bytesMax = 1_000_000;

/** A body that releases its memory when it is ended, and notes that. */
class Body implements Incoming {
  readonly name: number;
  over = false;
  readonly #ended: number[];
  readonly #memory: SharedMemory;

  constructor(name: number, ended: number[], memory: SharedMemory) {
    this.name = name;
    this.#ended = ended;
    this.#memory = memory;
  }

  crowdOut() {
    this.#ended.push(this.name);
    this.end();
  }

  end() {
    this.over = true;
    this.#memory.release(this);
  }
}

function sharing() {
  const memory = shareMemory(bytesMax);
  const ended: number[] = [];
  const bodies = Array.from({ length: 12 }, (_, name) => new Body(name, ended, memory));
  return { memory, ended, bodies };
}

test('ends the body that began first to make room, however much and however recently the body sent', () => {
  const { memory, ended, bodies } = sharing();
  const [first, second, third] = bodies as [Body, Body, Body];
  for (const body of [first, second, third]) memory.take(body, 100_000);
  for (let n = 0; n < 7; n += 1) memory.take(third, 100_000);
  memory.take(first, 1);
  expect(ended).toEqual([0]);
  expect(memory.held).toBe(900_000);
  memory.take(second, 150_000);
  expect(ended).toEqual([0, 1]);
});

interface Step {
  readonly act: 'take' | 'end';
  readonly which: number;
  readonly size: number;
}

const steps = fc.array(
  fc.record<Step>({
    act: fc.constantFrom('take', 'take', 'take', 'end'),
    which: fc.nat(11),
    size: fc.integer({ min: 1, max: bytesMax / 2 }),
  }),
  { maxLength: 150 },
);

test('keeps the limit, and ends only the oldest bodies, for any order of events', () => {
  fc.assert(
    fc.property(steps, (sequence) => {
      const { memory, ended, bodies } = sharing();
      let began: Body[] = [];
      for (const { act, which, size } of sequence) {
        const body = bodies[which] as Body;
        ended.length = 0;
        if (act === 'end' && began.includes(body)) body.end();
        if (act === 'take' && !body.over) {
          if (!began.includes(body)) began.push(body);
          memory.take(body, size);
        }
        expect(ended).toEqual(began.slice(0, ended.length).map(({ name }) => name));
        began = began.filter(({ over }) => !over);
        expect(memory.held).toBeLessThanOrEqual(bytesMax);
      }
      for (const body of began) body.end();
      expect(memory.held).toBe(0);
    }),
    { numRuns: 300 },
  );
});
