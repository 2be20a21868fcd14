/** What pages do beyond links and forms: they update parts, copy values, and send a form only once. */

/** Defined by idiomorph.js, which is loaded before this script. */
const { Idiomorph } = globalThis;

/** Updates a part of the page, but keeps what the reader has opened and the field that the reader is editing. */
function renew(part, fresh) {
  Idiomorph.morph(part, fresh, {
    morphStyle: 'outerHTML',
    ignoreActiveValue: true,
    callbacks: { beforeAttributeUpdated: (name) => name !== 'open' && name !== 'aria-busy' },
  });
}

/** The button that stops the updates of this page. */
const pause = document.querySelector('[data-pause]');
const isPaused = () => pause?.getAttribute('aria-pressed') === 'true';
if (pause !== null) {
  pause.hidden = false;
  pause.setAttribute('aria-pressed', 'false');
  pause.addEventListener('click', () => pause.setAttribute('aria-pressed', String(!isPaused())));
}

/** Warns that the page is out of date after two failed requests; one may fail because the reader leaves. */
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

/** Loads the page again at the shortest interval that one of its parts asks for, while the page is visible. */
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
      // What the page shows is gone, or the reader lost access. A reload shows the reason.
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

/** Sends a form only once, even if its button is clicked twice. */
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
