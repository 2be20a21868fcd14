import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { untilInterrupted } from '../../cli/interruption.ts';

class Program extends EventEmitter {
  readonly ends: number[] = [];
  exit(status: number): void {
    this.ends.push(status);
  }
}

test('Ctrl-C aborts, and is still listened to when others ask who listens', () => {
  const program = new Program();
  const { signal, forget } = untilInterrupted(program);
  let listeners = 0;
  // As the library that restores the cursor does: alone, it ends the program.
  program.on('SIGINT', () => {
    listeners = program.listenerCount('SIGINT');
  });
  program.emit('SIGINT');
  expect({ aborted: signal.aborted, listeners, ends: program.ends }).toEqual({
    ...{ aborted: true, listeners: 2, ends: [] },
  });
  forget();
  expect(program.listenerCount('SIGINT')).toBe(1);
});

test('a second Ctrl-C ends the program with status 130; the same one once more does not', () => {
  const program = new Program();
  let ms = 0;
  untilInterrupted(program, () => ms);
  program.emit('SIGINT');
  ms = 999;
  program.emit('SIGINT');
  expect(program.ends).toEqual([]);
  ms = 1_000;
  program.emit('SIGINT');
  expect(program.ends).toEqual([130]);
});
