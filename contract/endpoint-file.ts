import { z } from 'zod';
import { type Endpoint, endpointNames } from './endpoints.ts';

const parameters = z.record(z.string(), z.string());

const endpoint: z.ZodType<Endpoint> = z.strictObject({
  path: z.string().startsWith('/'),
  items: z.string().optional(),
  total: z.string().optional(),
  query: parameters.optional(),
  updatedSince: parameters.optional(),
  withDeleted: parameters.optional(),
});
/** The value of SERVICE_ENDPOINTS: some or all entries of the catalogue, each of them complete or null. */
export const endpointOverrides = z.partialRecord(z.enum(endpointNames), endpoint.nullable());
