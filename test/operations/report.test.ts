import { expect, test } from 'vitest';
import { amount, percent } from '../../operations/report/amounts.ts';

test('an amount that rounds to zero has no sign', () => {
  expect(['-0.001', '-0.005', '-1234.5', null].map((text) => amount(text))).toEqual([
    '0.00',
    '-0.01',
    '-1,234.50',
    '–',
  ]);
});

test('100 % is all: a share is rounded down', () => {
  expect(['1.0000', '0.9999', '0.5800', '0.0004', null].map(percent)).toEqual([
    '100.0 %',
    '99.9 %',
    '58.0 %',
    '0.0 %',
    '–',
  ]);
});
