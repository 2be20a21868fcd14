import { randomUUID } from 'node:crypto';

type Listing = 'connections' | 'documents' | 'usageData' | 'meters';

export const shapeOf = (listing: Listing) => ({
  key: listing,
  total: `total${listing[0]?.toUpperCase()}${listing.slice(1)}`,
});

/** Makes documents in the order of their listing. */
export function documents(count: number): { id: string; updated: string }[] {
  return Array.from({ length: count }, () => ({ id: randomUUID(), updated: '2026-05-01T00:00:00.000001' }));
}
