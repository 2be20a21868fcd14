import { z } from 'zod';
import { connectionStatuses } from '../records/company.ts';
import { fromText } from '../time.ts';

const id = z.uuid().transform((value) => value.toLowerCase());
const text = z.string().max(2_000_000);
const time = z.string().refine((value) => {
  try {
    fromText(value);
    return true;
  } catch {
    return false;
  }
}, 'a timestamp YYYY-MM-DDTHH:MM:SS[.ffffff] without a zone, or a date');
/** The bounds leave room for a bill's period, its due date and the bills that follow. */
const billDate = z.iso
  .date()
  .refine((day) => day >= '1900-01-01' && day < '3000-01-01', 'a day of the years 1900 to 2999');
/** A known status or any other, because the full list is not documented (service.md 2.4). */
const status = z.union([z.enum(connectionStatuses), z.string().regex(/^[A-Z_]{1,60}$/)]);

/** The body of `POST /sandbox/changes`. A creating change may contain the new record's `id`. */
export const changeSchema = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('createCompany'),
    id: id.optional(),
    organizationId: id.optional(),
    name: text.optional(),
    externalId: text.optional(),
  }),
  z.strictObject({
    type: z.literal('createConnection'),
    id: id.optional(),
    companyId: id,
    externalId: text.optional(),
    datasource: text.optional(),
    url: text.optional(),
    status: status.optional(),
    siteIds: z.array(id).optional(),
  }),
  z.strictObject({
    type: z.literal('updateConnection'),
    connectionId: id,
    status: status.optional(),
    externalId: text.optional(),
    url: text.optional(),
    datasource: text.optional(),
    workflowOwnerEmail: text.optional(),
    isActive: z.boolean().optional(),
    multiplyByOccupancy: z.boolean().optional(),
    statusErrorDetail: text.optional(),
  }),
  z.strictObject({
    type: z.literal('validateConnection'),
    connectionId: id,
    status: status.default('CONNECTED'),
    statusErrorDetail: text.optional(),
  }),
  z.strictObject({ type: z.literal('assignSites'), connectionId: id, siteIds: z.array(id) }),
  z.strictObject({
    type: z.literal('addAccount'),
    id: id.optional(),
    meterId: id.optional(),
    connectionId: id,
    siteId: id,
    datasourceType: z.enum(['ELECTRICITY', 'GAS', 'WATER']).default('ELECTRICITY'),
  }),
  z.strictObject({
    type: z.literal('rotateCredentials'),
    connectionId: id,
    username: text.optional(),
    password: text.optional(),
    securityQuestions: z.array(text).optional(),
  }),
  z.strictObject({
    type: z.literal('createDocument'),
    id: id.optional(),
    meterId: id,
    billDate: billDate.optional(),
  }),
  z.strictObject({
    type: z.literal('reprocessDocument'),
    documentId: id,
    reason: z.enum(['correction', 'meterAssignment', 'usageUpdate']).default('correction'),
    /** For meterAssignment: the meter that the first reading moves to. */
    meterId: id.optional(),
  }),
  z.strictObject({ type: z.literal('supersedeDocument'), id: id.optional(), documentId: id }),
  z.strictObject({
    type: z.literal('linkDocument'),
    documentId: id,
    /** The document that supersedes it; null clears the link. */
    revisedDocumentId: id.nullable(),
  }),
  z.strictObject({ type: z.literal('deleteDocument'), documentId: id }),
  z.strictObject({
    type: z.literal('syncIntervals'),
    meterId: id,
    start: time,
    end: time,
    mode: z.enum(['insert', 'update', 'both']).default('both'),
    granularitySeconds: z.int().min(60).max(86_400).default(900),
    usageUnits: text.default('kWh'),
    quality: text.default('ACTUAL'),
  }),
  z.strictObject({ type: z.literal('touch'), resource: z.enum(['connection', 'document']), id }),
  z.strictObject({ type: z.literal('noop'), resource: z.enum(['connection', 'document']), id }),
]);

export type Change = z.infer<typeof changeSchema>;
export type ChangeType = Change['type'];
export type ChangeOf<T extends ChangeType> = Extract<Change, { type: T }>;

/** How many changes one request may contain. */
const changesMax = 10_000;
export const changesSchema = z.strictObject({ changes: z.array(changeSchema).min(1).max(changesMax) });
