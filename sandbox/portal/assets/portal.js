/** Closes menus, and asks before something is lost. Every task can be done without this script. */

const openMenus = () => document.querySelectorAll('details.menu[open]');

document.addEventListener('click', (event) => {
  const at = event.target instanceof Element ? event.target : null;
  for (const menu of openMenus()) if (!menu.contains(at)) menu.open = false;
  const asker = at?.closest('[data-dialog]');
  if (asker) {
    event.preventDefault();
    document.getElementById(asker.dataset.dialog)?.showModal();
  }
  const dialog = at?.closest('[data-close]')?.closest('dialog');
  if (dialog) {
    event.preventDefault();
    dialog.close();
  }
});

document.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape') return;
  for (const menu of openMenus()) {
    menu.open = false;
    menu.querySelector('summary')?.focus();
  }
});

/** Shows the dialog that the address asks for, and removes it from the address, so that a reload does not ask again. */
const address = new URL(location.href);
const question = document.getElementById(address.searchParams.get('ask') ?? '');
if (question instanceof HTMLDialogElement) {
  question.removeAttribute('open');
  question.showModal();
}
if (address.searchParams.has('ask')) {
  address.searchParams.delete('ask');
  history.replaceState(null, '', address);
}
