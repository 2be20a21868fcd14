import type { Asked, Reply } from './scripted-server.ts';

export interface ListingShape {
  readonly key?: string;
  readonly total?: string;
  readonly perPage?: number;
  /** Fields of the envelope to leave out. */
  readonly omit?: readonly string[];
  /** `totalPages` of an empty list. */
  readonly totalPagesWhenEmpty?: 0 | 1;
}

/** Returns a page as the service does (service.md 2.7), or the last page beyond the end (service.md 7). */
export function pageOf(
  items: readonly unknown[],
  asked: Pick<Asked, 'query'>,
  shape: ListingShape = {},
): Reply {
  const { key = 'documents', total = 'totalDocuments', perPage = 100, omit = [] } = shape;
  const totalPages = Math.ceil(items.length / perPage) || (shape.totalPagesWhenEmpty ?? 1);
  const page = Math.min(Number(asked.query.get('page') ?? 1), totalPages);
  const envelope: Record<string, unknown> = {
    [total]: items.length,
    perPage,
    totalPages,
    currentPage: page,
    hasNext: page < totalPages,
    hasPrevious: page > 1,
    [key]: items.slice(Math.max(page - 1, 0) * perPage, page * perPage),
  };
  for (const field of omit) delete envelope[field];
  return { json: envelope };
}

/** Makes documents with ids `d1`, `d2`, … */
export function someDocuments(count: number): { id: string }[] {
  return Array.from({ length: count }, (_, index) => ({ id: `d${index + 1}` }));
}
