export { type Report, readReport } from '../../db/read/report.ts';
export { reportPage } from './page.ts';
export { reportText } from './summary.ts';
