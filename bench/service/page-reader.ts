/** The process that reads pages: it requests each path in turn, repeatedly, and checks only the status. */
import { type LoadReport, runLoad } from '../load/run.ts';
import { serve } from '../process/serve.ts';

export interface ReadInput {
  readonly port: number;
  readonly apiKey: string;
  readonly paths: readonly string[];
  /** Number of pages to read. */
  readonly pages: number;
  readonly inFlight: number;
}

export type PageReaderCalls = ReturnType<typeof createPageReader>;

function createPageReader() {
  return {
    read: async ({ port, apiKey, paths, pages, inFlight }: ReadInput): Promise<LoadReport> => {
      const requests = paths.map((path) =>
        Buffer.from(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: ${apiKey}\r\n\r\n`),
      );
      const asked = Array.from({ length: pages }, (_, n) => requests[n % requests.length] as Buffer);
      return await runLoad(port, asked, inFlight, 200);
    },
  };
}

serve(createPageReader());
