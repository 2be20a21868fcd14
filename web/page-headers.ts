/** Sent with every page: nothing runs, loads or frames it but the site's own files, and no cache keeps it. */
export const pageHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    // The stylesheet's own icons are data addresses.
    "img-src 'self' data:",
    "connect-src 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  // Not `no-referrer`: forms would then send `Origin: null`.
  'referrer-policy': 'same-origin',
  'cache-control': 'no-store',
} as const;
