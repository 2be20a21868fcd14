/** Keeps pages, which cost Postgres milliseconds, until a record of their company changes. */
export interface PageCache {
  /** The number of changes so far, taken before a page is read: a later change makes the page outdated. */
  asOf(): number;
  find(key: string): Buffer | undefined;
  keep(key: string, page: { readonly companyId: string; readonly asOf: number; readonly body: Buffer }): void;
  /** Must be called after a change of records of these companies was committed. */
  changed(companyIds: Iterable<string>): void;
}

/** Memory of a page besides its body and key, so that many empty pages do not fill the memory. */
const entryBytes = 500;

const sizeOf = (key: string, body: Buffer): number => entryBytes + 2 * key.length + body.length;

interface Kept {
  readonly companyId: string;
  readonly asOf: number;
  readonly body: Buffer;
}

export function createPageCache(bytesMax: number): PageCache {
  // A Map keeps the order: a page that is used moves to the end, and the first pages are dropped first.
  const pages = new Map<string, Kept>();
  const changedAt = new Map<string, number>();
  let bytes = 0;
  let changes = 0;

  const remove = (key: string, page: Kept) => {
    pages.delete(key);
    bytes -= sizeOf(key, page.body);
  };

  return {
    asOf: () => changes,
    find(key) {
      const page = pages.get(key);
      if (page === undefined) return undefined;
      if ((changedAt.get(page.companyId) ?? 0) > page.asOf) {
        remove(key, page);
        return undefined;
      }
      pages.delete(key);
      pages.set(key, page);
      return page.body;
    },
    keep(key, page) {
      const before = pages.get(key);
      if (before !== undefined) remove(key, before);
      const size = sizeOf(key, page.body);
      if (size > bytesMax / 4) return;
      pages.set(key, page);
      bytes += size;
      for (const [oldest, held] of pages) {
        if (bytes <= bytesMax) break;
        remove(oldest, held);
      }
    },
    changed(companyIds) {
      changes++;
      for (const id of companyIds) changedAt.set(id, changes);
    },
  };
}
