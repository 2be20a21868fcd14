/** Whether `npm run test:long` runs. */
export const long = process.env.TEST_LONG === '1';

/**
 * Returns how many cases a random or exhaustive test tries: `all` in `npm run test:long`, and otherwise
 * `few`. Unless `CI` is set, each run draws other cases. Histories that once failed stay in the tests as
 * examples, which always run.
 */
export const cases = (few: number, all: number): number => (long ? all : few);
