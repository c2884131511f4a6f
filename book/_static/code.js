// One choice for the code of all chapters, which the browser remembers: as each page folds it, all of it, or none. Without this
// script there is no choice, and each fold opens by itself.
(() => {
  const KEY = 'deep-dive-code';
  const folds = [...document.querySelectorAll('details.code')];
  const tools = document.querySelector('.page-tool')?.parentElement;
  if (!folds.length || !tools) return;
  const first = folds.map(fold => fold.open);
  const label = document.createElement('label');
  label.className = 'page-tool code-choice';
  label.innerHTML = 'Code <select aria-label="Code"><option value="">some</option><option value="all">all</option><option value="none">none</option></select>';
  const select = label.querySelector('select');
  const show = () => folds.forEach((fold, k) => { fold.open = select.value ? select.value === 'all' : first[k]; });
  try {   // a browser may refuse to remember
    select.value = localStorage.getItem(KEY) ?? '';
    if (select.selectedIndex < 0) select.value = '';
  } catch {}
  select.addEventListener('change', () => {
    show();
    try { localStorage.setItem(KEY, select.value); } catch {}
  });
  document.querySelector('.page-tool').before(label);
  if (select.value) show();
})();
