import type { z } from 'zod';
import { badRequest } from '../problem.ts';

/** A request's body as the schema has it. @throws Problem 400 that names what is wrong. */
export function readBody<T>(schema: z.ZodType<T>, body: unknown): T {
  const result = schema.safeParse(body ?? {});
  if (result.success) return result.data;
  const wrong = result.error.issues.map(({ path, message }) => `${path.join('.') || 'body'}: ${message}`);
  throw badRequest(wrong.join('; '));
}
