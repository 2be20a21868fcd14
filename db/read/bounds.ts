/** How much one page of the console reads. */
export const consoleBounds = {
  /** Rows of a list. Further rows are on further pages. */
  rows: 50,
  /** Rows that a page shows of a run's deletions, for a person who decides. The command lists all. */
  deletedRows: 1_000,
  /** Events, or records that wait, that a page of events examines; each takes some look-ups. */
  searchedMax: 4_000,
  /** The newest events of a day whose outcomes the overview counts. */
  arrivalsMax: 20_000,
  /** Connections that need attention, among which a page finds the oldest; each takes three look-ups. */
  connectionsMax: 4_000,
} as const;
