// Repairs of the theme's markup that no option offers; axe-core found them. The book reads the same without them.
(() => {
  const all = (selector, repair) => document.querySelectorAll(selector).forEach(repair);

  all('.search-button-field, summary[aria-label="Toggle hidden content"]', element => element.removeAttribute('aria-label'));
  all('.theme-switch-button', button => {
    button.removeAttribute('aria-label');
    button.insertAdjacentHTML('beforeend', '<span class="visually-hidden">Color mode</span>');
  });
  all('.theme-switch-button > i', icon => {
    icon.setAttribute('aria-hidden', 'true');
    icon.removeAttribute('title');
  });
  all('.citation[role="doc-biblioentry"]', entry => entry.setAttribute('role', 'listitem'));
  all('#pst-primary-sidebar', sidebar => {
    sidebar.setAttribute('role', 'region');
    sidebar.setAttribute('aria-label', 'Contents of the book');
  });

  // What scrolls sideways can be reached by keyboard. Formulas get their width only when they are typeset.
  const scrolling = 'div.highlight pre, .cell_output pre, div.math, .pst-scrollable-table-container';
  const focusable = () => {
    all(scrolling, box => {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute('tabindex');
    });
    all('span.math', formula => {  // a formula in a line of text that is wider than the column
      const width = formula.querySelector('mjx-container')?.getBoundingClientRect().width ?? 0;
      const wide = width > formula.parentElement.clientWidth;
      formula.classList.toggle('wide', wide);
      if (wide) formula.tabIndex = 0;
      else formula.removeAttribute('tabindex');
    });
  };
  const typeset = () => (window.MathJax?.startup?.promise ?? Promise.resolve()).then(focusable);
  focusable();
  window.addEventListener('load', typeset);
  window.addEventListener('resize', focusable);
})();
