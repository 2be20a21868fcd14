import type { z } from 'zod';
import { badRequest } from '../problem.ts';

/** Decodes a request's body by the schema. @throws Problem 400 that names the error */
export function readBody<T>(schema: z.ZodType<T>, body: unknown): T {
  const result = schema.safeParse(body ?? {});
  if (result.success) return result.data;
  const wrong = result.error.issues.map(({ path, message }) => `${path.join('.') || 'body'}: ${message}`);
  throw badRequest(wrong.join('; '));
}
