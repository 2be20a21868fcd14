/**
 * The rules for usage: a document's usage is a set, and reading the document replaces it. A row of
 * usage belongs to the document that was read last with it, and it is live while that document is.
 */

/** What a read of a document showed: the content of each row of its usage. */
export interface DocumentRead {
  readonly document: string;
  /** When the read certainly shows its state: `showsSince` of the document's rules. */
  readonly since: number;
  readonly began: number;
  /** The rows by id; null if the document is deleted. */
  readonly usage: ReadonlyMap<string, string> | null;
}

interface Document {
  readonly read: DocumentRead;
  /** Whether an equal read may be skipped; not after a row went to another document. */
  readonly hasDigest: boolean;
}

interface Usage {
  readonly document: string;
  readonly content: string;
  /** Of the read that wrote the row. */
  readonly since: number;
  readonly began: number;
  readonly isRemoved: boolean;
}

export interface Warehouse {
  readonly documents: ReadonlyMap<string, Document>;
  readonly usage: ReadonlyMap<string, Usage>;
}

export const empty: Warehouse = { documents: new Map(), usage: new Map() };

type Dated = Pick<DocumentRead, 'since' | 'began'>;
const isLater = (a: Dated, b: Dated): boolean =>
  a.since > b.since || (a.since === b.since && a.began > b.began);

const isEqual = (a: DocumentRead, b: DocumentRead): boolean =>
  (a.usage === null) === (b.usage === null) &&
  JSON.stringify([...(a.usage ?? [])]) === JSON.stringify([...(b.usage ?? [])]);

/** Merges the read of a document and of its usage. */
export function mergeDocument(warehouse: Warehouse, read: DocumentRead): Warehouse {
  const before = warehouse.documents.get(read.document);
  if (before !== undefined) {
    if (before.hasDigest && isEqual(before.read, read)) return warehouse;
    if (!isLater(read, before.read)) return warehouse;
  }
  const documents = new Map(warehouse.documents);
  const usage = new Map(warehouse.usage);
  let hasDigest = true;
  for (const [id, content] of read.usage ?? []) {
    const row = usage.get(id);
    const isElsewhere = row !== undefined && row.document !== read.document;
    if (isElsewhere && isLater(row, read)) {
      // Another document was read later with the row. Whether it stays there is seen next time.
      hasDigest = false;
      continue;
    }
    if (isElsewhere) forget(documents, row.document);
    const { document, since, began } = read;
    usage.set(id, { document, content, since, began, isRemoved: false });
  }
  for (const [id, row] of usage)
    if (row.document === read.document && read.usage !== null && !read.usage.has(id))
      usage.set(id, { ...row, isRemoved: true });
  documents.set(read.document, { read, hasDigest });
  return { documents, usage };
}

/** Clears the digest of a document that lost a row, or the row would be lost if it came back. */
function forget(documents: Map<string, Document>, id: string): void {
  const document = documents.get(id);
  if (document !== undefined) documents.set(id, { ...document, hasDigest: false });
}

/** Returns the live rows: the document and the content of each. */
export function liveUsage({ documents, usage }: Warehouse): Record<string, string> {
  const live = [...usage].filter(
    ([, { document, isRemoved }]) => !isRemoved && documents.get(document)?.read.usage !== null,
  );
  return Object.fromEntries(
    live.map(([id, { document, content }]) => [id, `${content} of ${document}`]).sort(),
  );
}
