/** Whether `npm run test:long` runs. */
export const long = process.env.TEST_LONG === '1';

/**
 * Returns how many cases a random or exhaustive test tries: `all` in `npm run test:long`, otherwise `few`.
 * Histories that once failed always run, as examples.
 */
export const cases = (few: number, all: number): number => (long ? all : few);
