const deep = 100_000;

/** JSON texts, complete or not, that nest 100,000 levels deep. A recursive reader runs out of stack. */
export const nested = {
  endless: '['.repeat(deep),
  array: '['.repeat(deep) + ']'.repeat(deep),
  object: `{"eventType":"planet.moved.v9","deep":${'{"":'.repeat(deep)}1${'}'.repeat(deep)}}`,
} as const;
