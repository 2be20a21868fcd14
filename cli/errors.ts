/** A mistake of the caller: shown without a stack, exit status 2. */
export class UsageError extends Error {}

/** What went wrong in words for a person: shown without a stack, exit status 1. */
export class CommandError extends Error {}
