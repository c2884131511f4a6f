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
  all('.has-children > details > summary', summary => {
    summary.setAttribute('aria-label', `Pages of ${summary.closest('li').querySelector('a').textContent}`);
  });

  // Copying takes the focus away from the button that was pressed.
  document.addEventListener('click', event => {
    const button = event.target.closest('.copybtn');
    if (button) setTimeout(() => button.focus());
  }, true);   // before its icon, on which a mouse clicks, is replaced

  // A link to a folded solution or cell unfolds it, and a search in the page finds what is in it.
  const target = () => document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const arrive = () => {
    target()?.closest('.toggle-hidden')?.querySelector('.toggle-button').click();
    target()?.querySelectorAll(':scope.cell > details.code').forEach(fold => { fold.open = true; });
  };
  window.addEventListener('load', arrive);
  window.addEventListener('hashchange', arrive);
  window.addEventListener('load', () => all('.admonition.toggle', box => {
    const folded = [...box.children].slice(1).filter(part => !part.matches('button'));
    const hide = () => folded.forEach(part => { part.hidden = box.classList.contains('toggle-hidden') ? 'until-found' : false; });
    folded.forEach(part => part.addEventListener('beforematch', () => box.querySelector('.toggle-button').click()));
    new MutationObserver(hide).observe(box, { attributeFilter: ['class'] });
    hide();
  }));

  // Paper is light.
  const root = document.documentElement;
  let theme;
  window.addEventListener('beforeprint', () => { theme = root.dataset.theme; root.dataset.theme = 'light'; });
  window.addEventListener('afterprint', () => { root.dataset.theme = theme; });

  // What scrolls sideways can be reached by keyboard, and a formula in a line that is wider than its column scrolls. Each is measured once
  // it is laid out, which what is folded or far from the screen is not: to ask for its size would lay it out now.
  const overflows = box => {
    if (!box.matches('span.math')) return box.scrollWidth > box.clientWidth;
    let column = box.parentElement;
    while (!column.clientWidth && column.parentElement) column = column.parentElement;  // what stands in a line has none
    return box.firstElementChild.getBoundingClientRect().width > column.clientWidth + 1;  // it is rounded
  };
  // All is measured before any is changed: each change would mean a new layout. The formulas come first: one that scrolls by itself
  // no longer widens the box around it.
  const mark = targets => {
    const found = targets.map(target => target.closest('span.math') ?? target);
    for (const formulas of [true, false]) {
      const boxes = found.filter(box => box.matches('span.math') === formulas).map(box => [box, overflows(box)]);
      for (const [box, scrolls] of boxes) {
        if (formulas) box.classList.toggle('wide', scrolls);
        if (scrolls) box.tabIndex = 0;
        else if (box.hasAttribute('tabindex')) box.removeAttribute('tabindex');
      }
    }
  };
  const measured = 'div.highlight pre, .cell_output pre, div.math, .picture, .pst-scrollable-table-container, span.math > :first-child';
  const laidOut = new ResizeObserver(entries => mark(entries.map(({ target }) => target)));
  const measure = () => {
    laidOut.disconnect();   // a formula keeps its size when its column does not, so all are seen as new
    all(measured, box => laidOut.observe(box));
  };
  window.addEventListener('load', measure);
  // Once more whenever the column has another width: with the window, without a sidebar, or as soon as a wider formula scrolls.
  let width;
  new ResizeObserver(([{ contentRect }]) => {
    if (width && contentRect.width !== width) requestAnimationFrame(measure);
    width = contentRect.width;
  }).observe(document.querySelector('main'));
  // Who reads by keyboard may go on to what is far from the screen.
  const tab = ({ key }) => {
    if (key !== 'Tab') return;
    window.removeEventListener('keydown', tab);
    mark([...document.querySelectorAll(measured)].filter(box => box.checkVisibility()));
  };
  window.addEventListener('keydown', tab);

  // What is copied has the formulas as TeX.
  document.addEventListener('copy', event => {
    const selection = getSelection();
    if (!selection.rangeCount || selection.isCollapsed) return;
    const range = selection.getRangeAt(0).cloneRange();
    const formulaAt = node => (node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement).closest('.math');
    const [first, last] = [formulaAt(range.startContainer), formulaAt(range.endContainer)];
    if (first) range.setStartBefore(first);   // half a formula is none
    if (last) range.setEndAfter(last);
    const copied = document.createElement('div');
    copied.append(range.cloneContents());
    const formulas = copied.querySelectorAll('.math');
    if (!formulas.length) return;
    for (const formula of formulas) {
      const sign = formula.localName === 'div' ? '$$' : '$';
      formula.textContent = sign + formula.querySelector('annotation, .tex').textContent + sign;
    }
    copied.className = 'off-screen';
    document.body.append(copied);   // innerText knows of lines only within the page
    event.clipboardData.setData('text/plain', copied.innerText);
    event.clipboardData.setData('text/html', copied.innerHTML);
    copied.remove();
    event.preventDefault();
  });
})();
