/**
 * What pages do beyond links and forms: parts that follow what happens, questions before something is lost, menus
 * that close, buttons that copy. Every page works without it.
 */

/** Brings a part up to date, item by item (`data-key`), so that what is opened, focused or selected stays. */
function renew(part, fresh) {
  if (part.innerHTML === fresh.innerHTML) return;
  const inUse = part.contains(document.activeElement) || part.querySelector('details[open]') !== null;
  const lists = (one) =>
    [...one.querySelectorAll('[data-key]')].filter((item) => !item.parentElement.closest('[data-key]'));
  const before = new Map(lists(part).map((item) => [item.dataset.key, item]));
  const after = lists(fresh);
  const home = lists(part)[0]?.parentElement;
  const sameShape =
    home !== undefined &&
    home !== null &&
    after.length > 0 &&
    after[0].parentElement.tagName === home.tagName;
  if (!inUse || !sameShape) {
    if (!inUse) part.replaceChildren(...fresh.childNodes);
    return;
  }
  const kept = after.map((item) => {
    const known = before.get(item.dataset.key);
    if (known === undefined || known.outerHTML === item.outerHTML) return known ?? item;
    if (known.contains(document.activeElement) || known.querySelector('details[open]') !== null) {
      renew(known, item);
      return known;
    }
    return item;
  });
  for (const [place, item] of kept.entries()) {
    if (home.children[place] !== item) home.insertBefore(item, home.children[place] ?? null);
  }
  while (home.children.length > kept.length) home.lastElementChild.remove();
}

/** Reads the page again as often as its most hurried part asks, while somebody looks at it. */
function follow() {
  const parts = [...document.querySelectorAll('[data-live]')];
  if (parts.length === 0) return;
  const everyMs = Math.min(...parts.map((part) => Number(part.dataset.live)));
  const again = () => setTimeout(look, everyMs);
  const look = async () => {
    if (document.visibilityState === 'hidden') return again();
    try {
      const response = await fetch(location.href, { headers: { accept: 'text/html' } });
      // The link has expired or webhooks were disabled meanwhile: the page says so.
      if (response.status === 403) return location.reload();
      if (response.ok) {
        const page = new DOMParser().parseFromString(await response.text(), 'text/html');
        for (const part of parts) {
          const fresh = page.getElementById(part.id);
          if (fresh !== null) renew(part, fresh);
        }
      }
    } catch {
      // The sandbox is away: the next look may find it.
    }
    again();
  };
  again();
}

/** `navigator.clipboard` is there only for https and loopback. */
async function copy(text) {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const field = document.createElement('textarea');
  field.value = text;
  field.className = 'unseen';
  document.body.append(field);
  field.select();
  document.execCommand('copy');
  field.remove();
}

function say(words) {
  const notice = document.getElementById('notice');
  const line = document.createElement('p');
  line.className = 'notice brief';
  line.textContent = words;
  notice?.replaceChildren(line);
}

document.addEventListener('click', async (event) => {
  const at = event.target instanceof Element ? event.target : null;
  for (const menu of document.querySelectorAll('details.menu[open]')) {
    if (!menu.contains(at)) menu.open = false;
  }
  const copier = at?.closest('[data-copy]');
  if (copier) {
    await copy(copier.dataset.copy);
    say('Copied.');
  }
  const asker = at?.closest('[data-dialog]');
  if (asker) {
    event.preventDefault();
    document.getElementById(asker.dataset.dialog)?.showModal();
  }
  const closer = at?.closest('[data-close]');
  const dialog = closer?.closest('dialog');
  if (dialog) {
    event.preventDefault();
    dialog.close();
  }
});

document.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape') return;
  for (const menu of document.querySelectorAll('details.menu[open]')) {
    menu.open = false;
    menu.querySelector('summary')?.focus();
  }
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

// What the last request has done is told once, not on every reload.
const address = new URL(location.href);
if (address.searchParams.has('done') || address.searchParams.has('ask')) {
  const question = document.getElementById(address.searchParams.get('ask') ?? '');
  if (question instanceof HTMLDialogElement) {
    question.removeAttribute('open');
    question.showModal();
  }
  address.searchParams.delete('done');
  address.searchParams.delete('ask');
  history.replaceState(null, '', address);
}

follow();
