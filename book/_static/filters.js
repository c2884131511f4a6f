// The form above the ledger's tables and above the index of systems: it hides the rows that lack a searched word or a chosen
// value. A row's values are its classes, as in “verdict-is-false”. Without this script the form is hidden, and every row shown.
(() => {
  const form = document.querySelector('form.filters');
  if (!form) return;
  const plain = text => text.toLowerCase().replace(/\s+/g, ' ');
  const rows = [...document.querySelectorAll('table.filtered tbody tr')].map(row => ({ row, text: plain(row.textContent) }));
  const sections = document.querySelectorAll('.hidden-when-empty');
  const controls = [...form.querySelectorAll('[name]')];
  const selects = controls.filter(control => control.localName === 'select');

  function update() {
    const words = plain(form.elements.words.value).split(' ');
    const classes = selects.filter(select => select.value).map(select => `${select.name}-is-${select.value}`);
    let shown = 0;
    for (const { row, text } of rows) {
      row.hidden = !(classes.every(name => row.classList.contains(name)) && words.every(word => text.includes(word)));
      shown += !row.hidden;
    }
    for (const section of sections) section.hidden = !section.querySelector('tbody tr:not([hidden])');
    form.querySelector('output').value = `${shown} of ${rows.length} ${form.dataset.noun} shown`;
  }

  // The address carries the choice, so that it can be linked to.
  function keep() {
    const chosen = new URLSearchParams(controls.filter(control => control.value).map(control => [control.name, control.value]));
    history.replaceState(null, '', `?${chosen}${location.hash}`);
  }

  // What a link points to must be seen.
  function reveal() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target?.closest('[hidden]')) return;
    form.reset();
    setTimeout(() => target.scrollIntoView());
  }

  const wanted = new URLSearchParams(location.search);
  for (const control of controls) control.value = wanted.get(control.name) ?? '';
  for (const select of selects) if (select.selectedIndex < 0) select.value = '';
  form.hidden = false;
  form.addEventListener('input', () => { update(); keep(); });
  form.addEventListener('reset', () => setTimeout(() => { update(); keep(); }));   // the fields are emptied after the event
  form.addEventListener('submit', event => event.preventDefault());
  window.addEventListener('hashchange', reveal);
  update();
  reveal();
})();
