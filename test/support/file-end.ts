/** Functions with which helpers clean up after each test file; test/support/setup.ts runs them. */
export const atFileEnd = new Set<() => Promise<void>>();

export async function cleanUpFile(): Promise<void> {
  const cleanUps = [...atFileEnd];
  atFileEnd.clear();
  for (const cleanUp of cleanUps) await cleanUp();
}
