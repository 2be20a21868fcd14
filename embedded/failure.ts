/** Why the default stack could not be started: one message, made to be shown as it is, that says what to do. */
export class EmbeddedError extends Error {
  override readonly name = 'EmbeddedError';
}
