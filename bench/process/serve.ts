/** The calls of a child of the bench. Each takes one value and returns one value. */
// biome-ignore lint/suspicious/noExplicitAny: the table is only a bound; every call site is typed by its own table
export type Calls = Record<string, (input: any) => unknown>;
export type CallOf<C extends Calls, K extends keyof C> = Awaited<ReturnType<C[K]>>;

export interface Request {
  readonly id: number;
  readonly name: string;
  readonly input: unknown;
}
export type Answer =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: string };

/**
 * Answers the calls of the process that forked this one, until `stop` or that process closes the channel.
 * Then awaits `cleanUp`.
 */
export function serve(calls: Calls, cleanUp: () => Promise<void> = async () => {}): void {
  process.on('message', async (request: Request) => {
    const answer = await answerTo(calls, request);
    if (process.connected) process.send?.(answer);
  });
  process.on('disconnect', () => {
    cleanUp().then(
      () => process.exit(0),
      () => process.exit(1),
    );
  });
  // Ctrl-C reaches every process of the terminal, but the parent decides when this process ends.
  process.on('SIGINT', () => {});
}

async function answerTo(calls: Calls, { id, name, input }: Request): Promise<Answer> {
  try {
    const call = calls[name];
    if (call === undefined) throw new Error(`there is no call ${name}`);
    return { id, value: await call(input) };
  } catch (error) {
    return { id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}
