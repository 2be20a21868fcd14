const deep = 100_000;

/** JSON text, complete or not, that nests 100,000 deep: a recursive reader runs out of stack. */
export const nested = {
  endless: '['.repeat(deep),
  array: '['.repeat(deep) + ']'.repeat(deep),
  object: `{"eventType":"planet.moved.v9","deep":${'{"":'.repeat(deep)}1${'}'.repeat(deep)}}`,
} as const;
