import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { untilInterrupted } from '../../cli/interruption.ts';

class Program extends EventEmitter {
  readonly ends: number[] = [];
  exit(status: number): void {
    this.ends.push(status);
  }
}

test('Ctrl-C aborts, and the listener stays registered', () => {
  const program = new Program();
  const { signal, forget } = untilInterrupted(program);
  let listeners = 0;
  // The library that restores the cursor ends the program if it is the only listener.
  program.on('SIGINT', () => {
    listeners = program.listenerCount('SIGINT');
  });
  program.emit('SIGINT');
  expect({ aborted: signal.aborted, listeners, ends: program.ends }).toEqual({
    aborted: true,
    listeners: 2,
    ends: [],
  });
  forget();
  expect(program.listenerCount('SIGINT')).toBe(1);
});

test('a second Ctrl-C ends the program with status 130, and a repetition of the first does not', () => {
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
