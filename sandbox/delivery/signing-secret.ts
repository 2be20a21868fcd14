import { randomBytes } from 'node:crypto';

/** Draws a signing secret: `whsec_` and base64 of random bytes. */
export const newSigningSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`;
