import { documentPayload } from '../events.ts';
import { composeBill, corrected } from '../generate/bills.ts';
import { createRandom, type Random } from '../generate/random.ts';
import { Problem } from '../problem.ts';
import type { SiteObject } from '../records/company.ts';
import type { Bill, Reading } from '../records/document.ts';
import { mainMeter } from '../records/rows.ts';
import { addDays, fromText, laterThan, toText } from '../time.ts';
import type { ChangeOf } from './schema.ts';
import { type ChangeContext, type Document, emit, take, unused } from './working-set.ts';

/**
 * Adds a bill of the meter's account and emits `document.created.v2`. The bill is for the next period if that
 * period is over. Otherwise it is an older bill, for the period before the first. Returns its id.
 */
export function createDocument(context: ChangeContext, change: ChangeOf<'createDocument'>): string {
  const { set, now, newId } = context;
  const meter = take(set.meters, 'meter', change.meterId);
  const own = [...set.meters.values()].filter((other) => other.accountId === meter.accountId);
  const meters = [meter, ...own.filter((other) => other.id !== meter.id)];
  const id = unused(set.documents, 'document', change.id ?? newId());
  const random = createRandom('document', id);
  const stamp = toText(now);
  const { start, end } = periodOf(context, meter.accountId, random, change.billDate);
  const bill = composeBill(random, meters, start, end);
  const company = take(set.companies, 'company', meter.companyId);
  const document = { id, company, created: stamp, updated: stamp, deletedAt: null, bill };
  store(context, document, true);
  emit(set, company.id, 'document.created.v2', payload(context, 'document.created.v2', document));
  return id;
}

function periodOf(
  { set, now }: ChangeContext,
  accountId: string,
  random: Random,
  billDate: string | undefined,
): { start: string; end: string } {
  const days = random.int(28, 33);
  const today = toText(now).slice(0, 10);
  const before = set.billed.get(accountId);
  const endOf = (): string => {
    if (billDate !== undefined) return billDate;
    if (before === undefined) return addDays(today, -random.int(1, 10));
    const next = addDays(before.until, 1 + days);
    return next < today ? next : addDays(before.from, -1);
  };
  const end = endOf();
  const start = addDays(end, -days);
  const from = before === undefined || start < before.from ? start : before.from;
  const until = before === undefined || end > before.until ? end : before.until;
  set.billed.set(accountId, { from, until });
  return { start, end };
}

/** Corrects or moves a document or gives it new usage. Emits `document.updated.v2` if its data differ. */
export function reprocessDocument(context: ChangeContext, change: ChangeOf<'reprocessDocument'>): void {
  const before = present(context, change.documentId);
  const bill = reprocessed(context, before, change);
  if (bill !== before.bill) rewrite(context, before, bill);
}

/** Replaces a document by a new bill. Emits `document.created.v2`, and `document.updated.v2` for the link. */
export function supersedeDocument(context: ChangeContext, change: ChangeOf<'supersedeDocument'>): string {
  const before = present(context, change.documentId);
  const id = unused(context.set.documents, 'document', change.id ?? context.newId());
  const stamp = toText(context.now);
  const bill = corrected(createRandom('supersede', id), before.bill);
  const next = { id, company: before.company, created: stamp, updated: stamp, deletedAt: null, bill };
  store(context, next, true);
  emit(context.set, next.company.id, 'document.created.v2', payload(context, 'document.created.v2', next));
  rewrite(context, before, { ...before.bill, revisedDocumentId: id });
  return id;
}

/** Sets or clears the link to the superseding document, as a person does, and emits `document.updated.v2`. */
export function linkDocument(context: ChangeContext, change: ChangeOf<'linkDocument'>): void {
  const before = present(context, change.documentId);
  const { revisedDocumentId } = change;
  if (revisedDocumentId !== before.bill.revisedDocumentId) {
    rewrite(context, before, { ...before.bill, revisedDocumentId });
  }
}

function rewrite(context: ChangeContext, before: Document, bill: Bill): void {
  const after = { ...before, updated: moved(context, before), bill };
  store(context, after, true);
  const oldSite = siteOf(context, before);
  const siteChanged = oldSite.id !== siteOf(context, after).id;
  const old = { updated: before.updated, ...(siteChanged ? { site: oldSite } : {}) };
  const type = 'document.updated.v2';
  emit(context.set, before.company.id, type, payload(context, type, after, old));
}

function reprocessed(
  context: ChangeContext,
  document: Document,
  change: ChangeOf<'reprocessDocument'>,
): Bill {
  const { bill } = document;
  const [first, ...rest] = bill.readings;
  if (first === undefined) return bill;
  if (change.reason === 'meterAssignment') {
    const meter = take(context.set.meters, 'meter', change.meterId ?? first.meterId);
    if (meter.companyId !== document.company.id)
      throw new Problem(400, `meter ${meter.id} is of another company`);
    if (meter.id === first.meterId) return bill;
    return { ...bill, readings: [{ ...first, meterId: meter.id }, ...rest] };
  }
  const random = createRandom('reprocess', document.id, document.updated);
  const corrected = (reading: Reading): Reading => ({
    ...reading,
    usageMilli: reading.usageMilli + random.int(1, 50_000),
    isEstimated: false,
  });
  const readings = bill.readings.map(corrected);
  if (change.reason === 'usageUpdate') return { ...bill, readings };
  return { ...bill, readings, notes: 'Corrected bill', fixedCents: bill.fixedCents + random.int(1, 500) };
}

/** Deletes a document and its usage rows; emits `document.deleted.v2` with its last state. */
export function deleteDocument(context: ChangeContext, change: ChangeOf<'deleteDocument'>): void {
  const before = present(context, change.documentId);
  emit(
    context.set,
    before.company.id,
    'document.deleted.v2',
    payload(context, 'document.deleted.v2', before),
  );
  const updated = moved(context, before);
  store(context, { ...before, updated, deletedAt: updated }, false);
}

/** Changes only `updated`, so there is no event (service.md 6.1.3). */
export function touchDocument(context: ChangeContext, id: string): void {
  const before = present(context, id);
  store(context, { ...before, updated: moved(context, before) }, false);
}

function present({ set }: ChangeContext, id: string): Document {
  const document = take(set.documents, 'document', id);
  if (document.deletedAt !== null) throw new Problem(409, `document ${id} is deleted`);
  return document;
}

const moved = ({ now }: ChangeContext, { updated }: Document): string =>
  toText(laterThan(fromText(updated), now));

function store({ set }: ChangeContext, document: Document, rewritten: boolean): void {
  set.documents.set(document.id, document);
  set.changedDocuments.add(document.id);
  if (rewritten) set.rewrittenDocuments.add(document.id);
}

const siteOf = ({ set }: ChangeContext, document: Document): SiteObject =>
  mainMeter(document, set.meters).site;

function payload(
  context: ChangeContext,
  type: 'document.created.v2' | 'document.updated.v2' | 'document.deleted.v2',
  document: Document,
  old?: object,
): object {
  return documentPayload(type, { ...document, site: siteOf(context, document) }, old);
}
