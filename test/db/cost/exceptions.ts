/** Statements that may cost more where there is more, each by a part of its text and with the reason. */
export const exceptions: readonly { readonly statement: string; readonly why: string }[] = [
  {
    statement: 'order by min(coalesce(next_attempt_at, recorded_at))',
    why: 'Who waits longest is told by all that waits. No index has events by when they are due.',
  },
  {
    statement: `c.external_id = e.payload ->> 'companyExternalId'`,
    why: 'Only of a meter that no listing has shown yet: companies are read for the one of that name.',
  },
];
