import { expect, test, vi } from 'vitest';
import { childEnvironment } from '../../embedded/environment.ts';

test('servers have a user, also where nothing names one: without any Temporal does not start', () => {
  vi.stubEnv('USER', 'somebody');
  expect(childEnvironment().USER).toBe('somebody');
  vi.stubEnv('USER', undefined);
  expect(childEnvironment().USER).toBe(`${process.getuid?.()}`);
});
