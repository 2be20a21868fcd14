import { z } from 'zod';
import { isObject } from './exact-json.ts';
import { Failure } from './failures.ts';
import { canonicalId, canonicalUuid } from './ids.ts';
import { isDateText, isTimeText } from './value-texts.ts';

/** Event types of the service (seed 6.2). */
export const eventTypes = [
  'connection.created.v2',
  'connection.updated.v2',
  'connection.validated.v2',
  'document.created.v2',
  'document.updated.v2',
  'document.deleted.v2',
  'intervals.synced',
] as const;
export type EventType = (typeof eventTypes)[number];

/**
 * Sent by `metersync doctor` through the public address of the receiver: signed, journalled as ignored,
 * changes nothing.
 */
export const probeEventType = 'metersync.probe';

export type EventKind = 'connection' | 'document' | 'interval' | 'ignored';

/**
 * The parts of an event that the pipeline needs to journal it. The rest stays in its payload, which Postgres
 * reads as it was signed. Times are the service's own text.
 */
export interface DecodedEvent {
  readonly type: string;
  readonly kind: EventKind;
  readonly deletes: boolean;
  /** Connection id, document id or meter id; null when ignored. */
  readonly recordId: string | null;
  readonly companyId: string | null;
  /** `updated` of the record; null for intervals.synced and ignored events. */
  readonly occurredAt: string | null;
}

const text = z.string().min(1);
const uuid = z
  .string()
  .refine((id) => canonicalUuid(id) !== undefined, 'a UUID')
  .transform(canonicalId);
const company = z.union([z.object({ id: uuid }), uuid.transform((id) => ({ id }))]);
/** Without a time, nothing says how an event compares with its record's state. */
const time = z.string().refine(isDateText, 'an ISO 8601 time');
const boundText = z.string().refine(isTimeText, 'an ISO 8601 time or Unix seconds');
const bound = z.union([boundText, z.int().transform(String).pipe(boundText)]);

const record = z.object({ id: uuid, company, updated: time });
const intervals = z.object({
  meterId: z.union([text.transform(canonicalId), z.int().transform(String)]),
  start: bound,
  end: bound,
});

/** An event of which nothing is read. */
export const ignoredEvent = (type: string): DecodedEvent => ({
  type,
  kind: 'ignored',
  deletes: false,
  recordId: null,
  companyId: null,
  occurredAt: null,
});

/**
 * Returns the type of an event: its `eventType`. `connection.created.v2` and `intervals.synced` carry none
 * (seed 2.4, 2.6) and are recognized by their shape. Returns undefined for any other shape.
 */
export function typeOfEvent(payload: Readonly<Record<string, unknown>>): string | undefined {
  if (typeof payload.eventType === 'string') return payload.eventType;
  if ('meterId' in payload && 'intervalCount' in payload) return 'intervals.synced';
  const connectionOnly = 'datasource' in payload || 'sitesRelations' in payload || 'status' in payload;
  if (connectionOnly && 'url' in payload && !('old' in payload)) return 'connection.created.v2';
  return undefined;
}

/**
 * Decodes a parsed payload for the journal. An unknown type is `ignored`.
 * @throws Failure EVENT_UNREADABLE when a known type lacks a field that it must carry
 */
export function decodeEvent(payload: unknown): DecodedEvent {
  if (!isObject(payload)) {
    throw new Failure('EVENT_UNREADABLE', 'the payload is not a JSON object');
  }
  const type = typeOfEvent(payload);
  if (type === undefined) return ignoredEvent('unknown');
  if (!(eventTypes as readonly string[]).includes(type)) return ignoredEvent(type);
  if (type === 'intervals.synced') {
    const { meterId } = read(intervals, payload, type);
    return { type, kind: 'interval', deletes: false, recordId: meterId, companyId: null, occurredAt: null };
  }
  const { id, company, updated } = read(record, payload, type);
  return {
    type,
    kind: type.startsWith('document.') ? 'document' : 'connection',
    deletes: type === 'document.deleted.v2',
    recordId: id,
    companyId: company.id,
    occurredAt: updated,
  };
}

function read<T>(schema: z.ZodType<T>, payload: unknown, type: string): T {
  const result = schema.safeParse(payload);
  if (result.success) return result.data;
  const wrong = result.error.issues.map((issue) => `${issue.path.join('.') || 'payload'}: ${issue.message}`);
  throw new Failure('EVENT_UNREADABLE', `${type}: ${wrong.join('; ')}`);
}
