// How Sphinx's search weighs its results: its own numbers, but what is called exactly what was typed comes first, and of results
// that weigh the same, the one with more of the typed words in its name.
// oxlint-disable-next-line no-unused-vars -- searchtools.js of Sphinx reads it
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: ([, name, , , score]) => {
    const words = text => splitQuery(text.toLowerCase());
    const query = words(new URLSearchParams(location.search).get('q') ?? '');
    const called = words(name.replace(/<.*?>/g, '').replace(/^[\d.]+ /, '')).join(' ');   // chapters and theorems have a number before it
    if (called === query.join(' ')) return score + 10;
    const shared = query.filter(word => word.length > 2 && called.includes(word));
    return score + shared.length / (query.length + 1);   // less than 1
  },
};
