import { expect, test } from 'vitest';
import { goals } from '../../bench/goals.ts';
import { performancePage } from '../../verify/performance-page.ts';

const page = 'Before.\n<!-- generated: begin -->\nold\n<!-- generated: end -->\nAfter.\n';
const taken = { machine: '2 cores, 4 GB of memory', takenOn: '2026-01-02' } as const;

test('each goal has the latest figure, and whether it was missed', () => {
  const made = performancePage(page, {
    live: { ...taken, size: 'full', figures: { recordsPerSecond: 299, rowP50Ms: 119 } },
  });
  expect(made).toContain('| `live.recordsPerSecond` | ≥ 300 | 299, missed |');
  expect(made).toContain('| `live.rowP50Ms` | < 120 | 119 |');
  expect(made).toContain('Measured on 2 cores, 4 GB of memory: on 2026-01-02 `live`.');
  const [, unknown = ''] = /^Not measured yet: (.*)\.$/m.exec(made) ?? [];
  expect(unknown.split(', ')).toHaveLength(Object.values(goals).flatMap(Object.keys).length - 2);
  expect(made).toMatch(/^Before\.\n[\s\S]*\nAfter\.\n$/);
});

test('a goal that depends on the size is judged only at full size', () => {
  const figures = { peakOfTenth: 1.3 };
  const row = '| `audit.peakOfTenth` | ≤ 1.2 | 1.3';
  const made = (size: 'full' | 'whole') => performancePage(page, { audit: { ...taken, size, figures } });
  expect(made('full')).toContain(`${row}, missed |`);
  expect(made('whole')).toContain(`${row} |`);
  expect(made('whole')).toContain('on 2026-01-02 `audit` (whole).');
});
