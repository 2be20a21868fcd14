/**
 * What pages do beyond links and forms: parts that follow what happens, buttons that copy, forms that are sent
 * once. Every task can be done without it.
 */

/** Defined by the script before this one. */
const { Idiomorph } = globalThis;

/** Brings a part up to date and leaves alone what the reader has opened, focused or selected. */
function renew(part, fresh) {
  Idiomorph.morph(part, fresh, {
    morphStyle: 'outerHTML',
    ignoreActiveValue: true,
    callbacks: { beforeAttributeUpdated: (name) => name !== 'open' && name !== 'aria-busy' },
  });
}

/** Whether the reader stopped live parts, on this page. */
const pause = document.querySelector('[data-pause]');
const isPaused = () => pause?.getAttribute('aria-pressed') === 'true';
if (pause !== null) {
  pause.hidden = false;
  pause.setAttribute('aria-pressed', 'false');
  pause.addEventListener('click', () => pause.setAttribute('aria-pressed', String(!isPaused())));
}

/** Says that live parts stand still, while the server is away; a look that a new page cut off is none. */
function warn(missed) {
  const line = document.getElementById('away');
  if (missed < 2) return line?.remove();
  if (line !== null) return;
  const words = document.createElement('p');
  words.id = 'away';
  words.className = 'notice bad';
  words.textContent = 'This page is no longer up to date: the server failed or does not answer.';
  document.getElementById('notice')?.append(words);
}

/** Reads the page again as often as its most hurried part asks, while somebody looks at it. */
function follow() {
  const parts = [...document.querySelectorAll('[data-live]')];
  if (parts.length === 0) return;
  const everyMs = Math.min(...parts.map((part) => Number(part.dataset.live)));
  const again = () => setTimeout(look, everyMs);
  let missed = 0;
  const look = async () => {
    if (document.visibilityState === 'hidden' || isPaused()) return again();
    try {
      const response = await fetch(location.href);
      // It may be gone, or no longer be looked at, for example as a link has expired: the page says so.
      if ([401, 403, 404].includes(response.status)) return location.reload();
      missed = response.status >= 500 ? missed + 1 : 0;
      if (response.ok) {
        const page = new DOMParser().parseFromString(await response.text(), 'text/html');
        for (const { id } of parts) {
          const fresh = page.getElementById(id);
          if (fresh !== null) renew(document.getElementById(id), fresh);
        }
      }
    } catch {
      missed += 1;
    }
    warn(missed);
    again();
  };
  again();
}

function say(words) {
  const line = document.createElement('p');
  line.className = 'notice good brief';
  line.textContent = words;
  document.getElementById('notice')?.replaceChildren(line);
  setTimeout(() => line.remove(), 4_000);
}

document.addEventListener('click', async (event) => {
  const copier = event.target instanceof Element ? event.target.closest('[data-copy]') : null;
  if (copier === null) return;
  await navigator.clipboard.writeText(copier.dataset.copy);
  say('Copied.');
});

/** A second click sends nothing. */
document.addEventListener('submit', (event) => {
  const form = event.target;
  if (form.method !== 'post') return;
  if (form.dataset.sent === 'yes') event.preventDefault();
  form.dataset.sent = 'yes';
  event.submitter?.setAttribute('aria-busy', 'true');
});
addEventListener('pageshow', () => {
  for (const form of document.querySelectorAll('form[data-sent]')) {
    delete form.dataset.sent;
    for (const button of form.querySelectorAll('[aria-busy]')) button.removeAttribute('aria-busy');
  }
});

/** Removes the result of the last action from the address, so that a reload does not repeat it. */
function forgetResult() {
  const address = new URL(location.href);
  if (!address.searchParams.has('done')) return;
  address.searchParams.delete('done');
  history.replaceState(null, '', address);
}

forgetResult();
follow();
