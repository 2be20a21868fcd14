/** Keys of the console. None acts while somebody types; every task can be done without them. */

const typing = (target) =>
  target instanceof Element && target.closest('input, textarea, select, [contenteditable]');

const rows = () => [...document.querySelectorAll('[data-row]')];

/** Moves to the next row, or the one before. */
function step(by) {
  const all = rows();
  const at = all.indexOf(document.activeElement);
  const next = at === -1 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1);
  all[next]?.focus();
  all[next]?.scrollIntoView({ block: 'nearest' });
}

let going = false;
let forget;

/** The key after `g`. */
function go(key) {
  going = false;
  clearTimeout(forget);
  const link = [...document.querySelectorAll('#navigation [data-key]')].find(
    ({ dataset }) => dataset.key === key,
  );
  link?.click();
  return link !== undefined;
}

const acts = {
  '/': () => document.getElementById('search')?.focus(),
  '?': () => document.getElementById('keys')?.showModal(),
  j: () => step(1),
  k: () => step(-1),
  g: () => {
    going = true;
    forget = setTimeout(() => {
      going = false;
    }, 1_500);
  },
};

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  if (document.querySelector('dialog[open]') !== null) return;
  if (going && go(event.key)) return event.preventDefault();
  const act = Object.hasOwn(acts, event.key) ? acts[event.key] : undefined;
  if (act === undefined) return;
  event.preventDefault();
  act();
});

for (const button of document.querySelectorAll('[data-dialog="keys"]')) button.hidden = false;
