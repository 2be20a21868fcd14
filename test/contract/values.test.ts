import { expect, test } from 'vitest';
import { kindOfText } from '../../contract/values.ts';

test.each([
  ['2024-02-29', 'date'],
  ['2023-02-29', 'text'],
  ['0000-01-01', 'text'],
  ['2026-05-01T12:30:00.123456', 'timestamp'],
  ['2026-05-01T12:30:00.1234567', 'text'],
  ['2026-05-01 24:00', 'text'],
  ['2026-05-01T12:30:00+05:30', 'timestamp'],
  ['12.50', 'decimal'],
  ['007.5', 'text'],
  ['1250', 'text'],
  ['-0.5', 'decimal'],
  ['', 'text'],
  ['ABC', 'text'],
  ['8B5F3E0A-1d2c-4f6b-9a7e-0c1d2e3f4a5b', 'uuid'],
])('%j is a %s', (text, kind) => {
  expect(kindOfText(text)).toBe(kind);
});
