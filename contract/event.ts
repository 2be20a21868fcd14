import { z } from 'zod';
import { Failure } from './failures.ts';
import { isObject } from './json.ts';
import type { CatchUpKind } from './names.ts';
import { canonicalId, canonicalUuid, isDateText, isTimeText } from './values.ts';

/**
 * One verified delivery, as it travels from the receiver through Temporal to the journal. The body is the
 * signed body without its secrets. It is text, or base64 if the text would exceed Temporal's payload limit.
 */
export interface DeliveredEvent {
  /** Message id: the same on every attempt to deliver the event (service.md 5.3). */
  readonly id: string;
  /** Unix seconds of this attempt. */
  readonly timestamp: number;
  /** When the receiver had the whole request: ISO 8601, UTC. */
  readonly receivedAt: string;
  readonly body?: string;
  readonly bodyBase64?: string;
}

/** Input of `applyEvents`. No other payload in Temporal carries events. */
export interface EventGroup {
  readonly events: readonly DeliveredEvent[];
  /** Number of signed deliveries that the receiver refused since its last report, by reason. Sent without events. */
  readonly refused?: Readonly<Record<string, number>>;
  /** Set when an operator replays events of the journal. */
  readonly replay?: Replay;
}

/** Which events a replay records again: all except applied events, or all. */
export type Replay = 'unapplied' | 'all';

/** What events of a kind are about. */
interface EventKindFacts {
  /** The resource of the records, by which the sweep reads them. */
  readonly plural: CatchUpKind;
}

/** The kinds of events, by the names that the journal uses. */
export const eventKinds = {
  connection: { plural: 'connections' },
  document: { plural: 'documents' },
  interval: { plural: 'intervals' },
} as const satisfies Readonly<Record<string, EventKindFacts>>;

/** A kind of events that are about records. */
export type RecordEventKind = keyof typeof eventKinds;
export const recordEventKinds = Object.keys(eventKinds) as RecordEventKind[];

/** The kinds whose events name the company whose listings contain the record. */
export const companyEventKinds = ['connection', 'document'] as const satisfies readonly RecordEventKind[];

/** Event types of the service (service.md 6.2), each with its kind, and whether it deletes its record. */
const typesOfEvents = {
  'connection.created.v2': { kind: 'connection', deletes: false },
  'connection.updated.v2': { kind: 'connection', deletes: false },
  'connection.validated.v2': { kind: 'connection', deletes: false },
  'document.created.v2': { kind: 'document', deletes: false },
  'document.updated.v2': { kind: 'document', deletes: false },
  'document.deleted.v2': { kind: 'document', deletes: true },
  'intervals.synced': { kind: 'interval', deletes: false },
} as const satisfies Readonly<Record<string, { readonly kind: RecordEventKind; readonly deletes: boolean }>>;
export type EventType = keyof typeof typesOfEvents;
export const eventTypes = Object.keys(typesOfEvents) as EventType[];

/** The types whose events delete their record. */
export const deletingTypes = eventTypes.filter((type) => typesOfEvents[type].deletes);

/** Returns the kind of a type of events; `ignored` if it is unknown. */
export const kindOfType = (type: string): EventKind =>
  isEventType(type) ? typesOfEvents[type].kind : 'ignored';

const isEventType = (type: string): type is EventType => Object.hasOwn(typesOfEvents, type);

/**
 * The type of the event that `metersync doctor` sends through the public address of the receiver. The event
 * is signed. It is journalled as ignored, and changes nothing.
 */
export const probeEventType = 'metersync.probe';

export type EventKind = RecordEventKind | 'ignored';

/**
 * The parts of an event that the pipeline needs to journal it. The rest stays in the payload, which Postgres
 * reads as it was signed. Times are the service's own text.
 */
export interface DecodedEvent {
  readonly type: string;
  readonly kind: EventKind;
  readonly deletes: boolean;
  /** Connection id, document id or meter id; null when ignored. */
  readonly recordId: string | null;
  /** Null if the event names none: the row of its record may have it. */
  readonly companyId: string | null;
  /** `updated` of the record; null for intervals.synced and ignored events, and if it is missing or unreadable. */
  readonly occurredAt: string | null;
}

const text = z.string().min(1);
const uuid = z
  .string()
  .refine((id) => canonicalUuid(id) !== undefined, 'a UUID')
  .transform(canonicalId);
const company = z.union([z.object({ id: uuid }), uuid.transform((id) => ({ id }))]);
/** The id is enough: a read of the record shows its company, and a later read than usual settles an event without a time. */
const time = z.string().refine(isDateText).nullish().catch(null);
const boundText = z.string().refine(isTimeText, 'an ISO 8601 time or Unix seconds');
const bound = z.union([boundText, z.int().transform(String).pipe(boundText)]);

const record = z.object({ id: uuid, company: company.nullish().catch(null), updated: time });
const intervals = z.object({
  meterId: z.union([text.transform(canonicalId), z.int().transform(String)]),
  start: bound,
  end: bound,
});

/** The decoded form of an ignored event: nothing else is read from it. */
export const ignoredEvent = (type: string): DecodedEvent => ({
  type,
  kind: 'ignored',
  deletes: false,
  recordId: null,
  companyId: null,
  occurredAt: null,
});

/**
 * Returns the type of an event: its `eventType`. `connection.created.v2` and `intervals.synced` have no
 * `eventType` (service.md 2.4, 2.6) and are recognized by their shape. Returns undefined for any other shape.
 */
export function typeOfEvent(payload: Readonly<Record<string, unknown>>): string | undefined {
  if (typeof payload.eventType === 'string' && payload.eventType !== '') return payload.eventType;
  if ('meterId' in payload && 'intervalCount' in payload) return 'intervals.synced';
  const connectionOnly = 'datasource' in payload || 'sitesRelations' in payload || 'status' in payload;
  if (connectionOnly && 'url' in payload && !('old' in payload)) return 'connection.created.v2';
  return undefined;
}

/**
 * Decodes a parsed payload for the journal. An unknown type is `ignored`.
 * @throws Failure EVENT_UNREADABLE when an event has no type, or a known type lacks a field that it must carry
 */
export function decodeEvent(payload: unknown): DecodedEvent {
  if (!isObject(payload)) {
    throw new Failure('EVENT_UNREADABLE', 'the payload is not a JSON object');
  }
  const type = typeOfEvent(payload);
  if (type === undefined) {
    throw new Failure('EVENT_UNREADABLE', 'it has no eventType, and not the fields of a type that has none');
  }
  if (!isEventType(type)) return ignoredEvent(type);
  const { kind, deletes } = typesOfEvents[type];
  if (kind === 'interval') {
    const { meterId } = read(intervals, payload, type);
    return { type, kind, deletes, recordId: meterId, companyId: null, occurredAt: null };
  }
  const { id, company, updated } = read(record, payload, type);
  return {
    type,
    kind,
    deletes,
    recordId: id,
    companyId: company?.id ?? null,
    occurredAt: updated ?? null,
  };
}

function read<T>(schema: z.ZodType<T>, payload: unknown, type: string): T {
  const result = schema.safeParse(payload);
  if (result.success) return result.data;
  const wrong = result.error.issues.map((issue) => describeIssue(issue, payload));
  throw new Failure('EVENT_UNREADABLE', `${type}: ${wrong.join('; ')}`);
}

/** Says what is wrong with a field: `updated is missing`, `id is not a UUID`. */
function describeIssue({ path, code, message }: z.core.$ZodIssue, payload: unknown): string {
  const name = path.join('.') || 'the payload';
  const value = path.reduce<unknown>((at, key) => (isObject(at) ? at[String(key)] : undefined), payload);
  if (value === undefined) return `${name} is missing`;
  return code === 'custom' ? `${name} is not ${message}` : `${name} cannot be read`;
}
