/** The upper limit of a backfill: a process that only fetches and parses every page with the same client. */
import { createLog } from '../app/process/log.ts';
import { openService } from '../app/service.ts';
import { readSettings } from '../app/settings/settings.ts';
import { backfillBounds } from '../contract/limits.ts';
import { walkPages } from '../service/walk.ts';
import { serve } from './child.ts';

export type FetchOnlyCalls = ReturnType<typeof createFetchOnly>;

function createFetchOnly() {
  return {
    /** Returns the seconds to read all documents of all companies, as many at a time as a backfill reads. */
    fetch: async (service: {
      url: string;
      apiKey: string;
    }): Promise<{ documents: number; seconds: number }> => {
      const log = createLog({ level: 'silent' });
      const { client } = openService(readSettings({}), service.url, service.apiKey, log);
      const began = performance.now();
      const companies: string[] = [];
      for await (const page of walkPages({ client, endpoint: 'companies', params: {}, lane: 'backfill' })) {
        companies.push(...page.ids.filter((id) => id !== null));
      }
      let documents = 0;
      const reader = async () => {
        for (let companyId = companies.pop(); companyId !== undefined; companyId = companies.pop()) {
          const listing = { client, endpoint: 'documents', params: { companyId }, lane: 'backfill' } as const;
          for await (const page of walkPages(listing)) documents += page.count;
        }
      };
      await Promise.all(Array.from({ length: backfillBounds.companiesAtOnce }, reader));
      await client.close();
      return { documents, seconds: (performance.now() - began) / 1000 };
    },
  };
}

serve(createFetchOnly());
