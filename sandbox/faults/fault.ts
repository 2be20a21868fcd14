import { z } from 'zod';

const common = {
  /** The start of the path after the version, such as `/document/company`; by default every path. */
  path: z.string().startsWith('/').optional(),
  probability: z.number().min(0).max(1).default(1),
  /** The maximum number of requests that the fault strikes. */
  times: z.int().min(1).optional(),
  /** How many real seconds the fault lasts. */
  seconds: z.number().min(0).optional(),
  seed: z.int().default(1),
};

/** A day, because a timer of more than 24 days would fire at once. */
const msMax = 86_400_000;

/** The body of `POST /sandbox/faults`: how the API misbehaves, where, and for how long. */
export const faultSchema = z.discriminatedUnion('kind', [
  /** The answer has this status. `retryAfter`, seconds or a date, is sent unchanged. */
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
  /** The answer has status 200 and the content type of JSON, but is not JSON. */
  z.strictObject({ kind: z.literal('garbage'), ...common }),
  /** The connection is closed without an answer. */
  z.strictObject({ kind: z.literal('reset'), ...common }),
  /** The first record is inserted after page 1 was read, so all records of later pages move by one. */
  z.strictObject({ kind: z.literal('itemInserted'), ...common }),
  /** The first record of a list is removed after page 1 was read, so a walk misses one record. */
  z.strictObject({ kind: z.literal('itemRemoved'), ...common }),
  /** Answers show the records as they were when the fault was set. */
  z.strictObject({ kind: z.literal('stale'), ...common }),
]);
export type Fault = z.infer<typeof faultSchema>;
