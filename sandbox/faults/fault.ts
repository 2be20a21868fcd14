import { z } from 'zod';

const common = {
  /** The start of the path after the version: `/document/company`. Absent: every path. */
  path: z.string().startsWith('/').optional(),
  probability: z.number().min(0).max(1).default(1),
  /** The most requests that it strikes. */
  times: z.int().min(1).optional(),
  /** Real seconds that it lasts. */
  seconds: z.number().min(0).optional(),
  seed: z.int().default(1),
};

/** A day. A timer of more than 24 days fires at once. */
const msMax = 86_400_000;

/** The body of `POST /sandbox/faults`: how the API misbehaves, where, and for how long. */
export const faultSchema = z.discriminatedUnion('kind', [
  /** An answer with this status; `retryAfter` is sent unchanged, seconds or a date. */
  z.strictObject({
    kind: z.literal('status'),
    status: z.int().min(400).max(599),
    retryAfter: z.union([z.string().regex(/^[ -~]*$/, 'printable ASCII'), z.number()]).optional(),
    ...common,
  }),
  z.strictObject({
    kind: z.literal('latency'),
    ms: z.tuple([z.number().min(0).max(msMax), z.number().min(0).max(msMax)]),
    ...common,
  }),
  /** The connection breaks in the middle of the body. */
  z.strictObject({ kind: z.literal('cut'), ...common }),
  /** 200 and JSON by its header, but no JSON. */
  z.strictObject({ kind: z.literal('garbage'), ...common }),
  /** The connection is closed without an answer. */
  z.strictObject({ kind: z.literal('reset'), ...common }),
  /** The first record of a list is not there yet on page 1: later pages see everything moved by one. */
  z.strictObject({ kind: z.literal('itemInserted'), ...common }),
  /** The first record of a list is gone after page 1: one record is never seen by a walk. */
  z.strictObject({ kind: z.literal('itemRemoved'), ...common }),
  /** Reads answer as of the moment at which the fault was set. */
  z.strictObject({ kind: z.literal('stale'), ...common }),
]);
export type Fault = z.infer<typeof faultSchema>;
