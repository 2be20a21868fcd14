/** How much one page of the console reads. */
export const consoleBounds = {
  /** Rows of a list. Further rows are on further pages. */
  rows: 50,
  /** Deletions of a run that a page shows for a decision. The command lists all. */
  deletedRows: 1_000,
  /** Events that a page of events searches if few match its filter. Each takes a few look-ups. */
  searchedMax: 4_000,
  /** Events of the last day, the newest ones, that the overview counts by outcome. */
  arrivalsMax: 20_000,
  /** Connections that need attention among which a page finds the oldest, with 3 look-ups each. */
  connectionsMax: 4_000,
} as const;
