/** Whether `npm run test:long` runs. */
export const long = process.env.TEST_LONG === '1';

/**
 * How many cases a random or exhaustive test tries: `few` in `npm test`, which draws others in each run without
 * `CI`; `all` in `npm run test:long`. Histories that once failed stay examples, which always run.
 */
export const cases = (few: number, all: number): number => (long ? all : few);
