/** Colours keep a contrast of 4.5 to 1 for text and 3 to 1 for series, in light and dark. */
const light = `--page: #ffffff; --card: #f6f7f9; --text: #1d2330; --soft: #4b5566; --line: #8a93a3; --grid: #dfe3ea;
  --series-1: #1f6fb4; --series-2: #b3540d; --series-3: #2c7a3f; --series-4: #8a3fa0; --series-5: #b02a4c; --series-6: #3d6c7a;
  --series-7: #7a6400; --series-8: #5a5fc7;
  --heat-0: #e6eef8; --heat-1: #c0d6ee; --heat-2: #8fb8df; --heat-3: #5794cb; --heat-4: #2a6cab; --heat-5: #124578;`;
const dark = `--page: #12161d; --card: #1a2029; --text: #e8ecf2; --soft: #b3bdcb; --line: #7d8798; --grid: #323b48;
  --series-1: #69aeea; --series-2: #f0975a; --series-3: #74c788; --series-4: #cf94e2; --series-5: #f2849f; --series-6: #86bccb;
  --series-7: #d6bd55; --series-8: #a3a7f7;
  --heat-0: #1b2836; --heat-1: #1d4263; --heat-2: #1f5e92; --heat-3: #3c83bd; --heat-4: #7bb0de; --heat-5: #cfe4f7;`;

export const style = `
:root { color-scheme: light dark; ${light} }
@media (prefers-color-scheme: dark) { :root { ${dark} } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem 1rem 3rem; background: var(--page); color: var(--text);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; }
h2 { font-size: 1.1rem; margin: 0; }
header p, .caption { color: var(--soft); margin: 0 0 1rem; }
section { background: var(--card); border: 1px solid var(--grid); border-radius: .5rem; padding: 1rem; margin: 1rem 0; }
.figure { font-size: 1.5rem; font-weight: 600; margin: .1rem 0; }
.none { color: var(--soft); }
.wide { overflow-x: auto; }
.chart { min-width: 36rem; }
.chart svg { display: block; width: 100%; height: auto; }
.chart text { font: 13px system-ui, sans-serif; }
summary { cursor: pointer; margin-top: .5rem; }
.table { max-height: 24rem; overflow-y: auto; }
.short { white-space: nowrap; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
th, td { text-align: left; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid var(--grid); vertical-align: top; }
@media print { section { break-inside: avoid; } .table { max-height: none; } }
`;
