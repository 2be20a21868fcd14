/** A mistake of the caller: printed without a stack, exit status 2. */
export class UsageError extends Error {}

/** A failure with a message for people: printed without a stack, exit status 1. */
export class CommandError extends Error {}
