import { expect, test } from 'vitest';
import { amount, percent } from '../../operations/report/amounts.ts';
import { loadChart } from '../../operations/report/charts.ts';

test('an amount that rounds to zero has no sign', () => {
  expect(['-0.001', '-0.005', '-1234.5', null].map((text) => amount(text))).toEqual([
    '0.00',
    '-0.01',
    '-1,234.50',
    '–',
  ]);
});

test('a share is rounded down, so that 100 % means all', () => {
  expect(['1.0000', '0.9999', '0.5800', '0.0004', null].map(percent)).toEqual([
    '100.0 %',
    '99.9 %',
    '58.0 %',
    '0.0 %',
    '–',
  ]);
});

test('the steps of the load of many meters are whole numbers that fit on a line', () => {
  const load = Array.from({ length: 168 }, (_, at) => ({
    weekday: 1 + Math.floor(at / 24),
    hour: at % 24,
    kw: String(at * 100),
  }));
  expect(loadChart(load).match(/[\d.,e+]+–[\d.,e+]+/g)).toEqual([
    '0–2,780',
    '2,780–5,570',
    '5,570–8,350',
    '8,350–11,100',
    '11,100–13,900',
    '13,900–16,700',
  ]);
});
