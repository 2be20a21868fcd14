/** The embedded stack could not be started. The message is for people and says what to do. */
export class EmbeddedError extends Error {
  override readonly name = 'EmbeddedError';
}
