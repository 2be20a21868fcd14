import { absent } from './absent.ts';
import { auditWork } from './audit.ts';
import { catchUp } from './catch-up.ts';
import { consolePages } from './console.ts';
import { pages } from './pages.ts';
import { readingWork } from './readings.ts';
import { recording } from './recording.ts';
import { runs } from './runs.ts';
import { upkeep } from './upkeep.ts';
import type { Work } from './work.ts';

/** All work of a running deployment in the warehouse. Each uses the plot of its place, from 1. */
export const everything: readonly Work[] = [
  ...recording,
  ...pages,
  ...readingWork,
  ...catchUp,
  ...absent,
  ...runs,
  ...upkeep,
  ...auditWork,
  ...consolePages,
];
