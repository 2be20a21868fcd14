import { randomUUID } from 'node:crypto';
import { pageOf } from '../service/listing.ts';
import { type Asked, type Reply, type Script, ScriptedServer } from '../service/scripted-server.ts';

type Listing = 'connections' | 'documents' | 'usageData' | 'meters';

const paths: Readonly<Record<Listing, string>> = {
  connections: 'connection',
  documents: 'document',
  usageData: 'usage',
  meters: 'meter',
};

/** The service's listings of one company; a listing that is not given is empty. */
export type Listings = Partial<Record<Listing, (asked: Asked) => Reply>>;

export interface ScriptedCompany {
  readonly id: string;
  /** Lists the requested pages of a listing, in order. */
  asked(listing: Listing): number[];
}

/** A service with scripted listings of each company, over real HTTP. */
export interface ScriptedService {
  readonly url: string;
  addCompany(listings: Listings): ScriptedCompany;
  stop(): Promise<void>;
}

export async function startScriptedService(): Promise<ScriptedService> {
  const companies = new Map<string, Listings>();
  const script: Script = (asked) => {
    const [, , resource, , id] = asked.path.split('/');
    if (asked.path === '/v2.2/company') return { json: [...companies.keys()].map((key) => ({ id: key })) };
    const listing = (Object.keys(paths) as Listing[]).find((key) => paths[key] === resource);
    const listings = companies.get(id ?? '');
    if (listing === undefined || listings === undefined) return { status: 404, json: { detail: 'no' } };
    return (listings[listing] ?? ((one) => pageOf([], one, shapeOf(listing))))(asked);
  };
  const server = await ScriptedServer.start(script);
  return {
    url: server.url,
    addCompany: (listings) => {
      const id = randomUUID();
      companies.set(id, listings);
      return {
        id,
        asked: (listing) =>
          server.asked
            .filter(({ path }) => path === `/v2.2/${paths[listing]}/company/${id}`)
            .map(({ query }) => Number(query.get('page'))),
      };
    },
    stop: () => server.stop(),
  };
}

export const shapeOf = (listing: Listing) => ({
  key: listing,
  total: `total${listing[0]?.toUpperCase()}${listing.slice(1)}`,
});

/** Makes documents in the order of their listing. */
export function documents(count: number): { id: string; updated: string }[] {
  return Array.from({ length: count }, () => ({ id: randomUUID(), updated: '2026-05-01T00:00:00.000001' }));
}
