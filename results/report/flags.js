// What is worth knowing first, at the top of the page.

// The worst first.
const kNoteTitles = {
  scaling: 'Scaling',
  prediction: 'Against the prediction',
  failed_check: 'Failed checks',
  slow_rank: 'A rank for which the others wait',
  throttling: 'GPUs held back',
  warmup_not_over: 'Warm-up that was not over',
  drift: 'Drift',
  outlier_run: 'Runs far off',
  outliers: 'Steps far off',
  note: 'Notes',
};
const kNotesShown = 3;

// A sentence, and what it is about.
const sentence = (text, subject) => element(
    'p', {}, element('span', {class: 'sentence'}, text),
    subject ? element('span', {class: 'subject'}, subject) : null);

// Notes of one kind together; many are folded away.
function notesItem(title, notes) {
  const lines = notes.map(({text, subject}) => sentence(text, subject));
  const item = element('li', {}, element('h3', {}, title), ...lines.slice(0, kNotesShown));
  const more = lines.slice(kNotesShown);
  if (more.length)
    item.append(
        element('details', {}, element('summary', {}, `${count(more.length)} more of this kind`), ...more));
  return item;
}

// Does it scale as it should? A sentence per line that was run on several numbers of devices.
function showAnswers(data) {
  const answered = data.curves.filter(({answer}) => answer);
  byId('answers').hidden = !answered.length;
  byId('answer-list').replaceChildren(...answered.map(({label, answer}) => {
    const kind = {as_it_should: 'fine', not_judged: 'open', held_back: ''}[answer.kind];
    return element('li', {class: kind}, sentence(answer.text, data.curves.length > 1 && label));
  }));
}

function showNotes(data) {
  const of = (kind) => data.notes.filter((note) => note.kind === kind);
  const kinds = Object.keys(kNoteTitles).filter((kind) => of(kind).length);
  const fine = data.runs.some((run) => run.steps) ?
      'Nothing odd was found: no drift, no outliers, no rank or GPU behind the others.' :
      'Nothing odd was found between the runs; what happened within one, logs don\'t tell.';
  const items = kinds.length ? kinds.map((kind) => notesItem(kNoteTitles[kind], of(kind))) :
                               [element('li', {class: 'fine'}, fine)];
  byId('flag-list').replaceChildren(...items);
}

function showLeftOut(leftOut) {
  const list = byId('left-out');
  list.hidden = !leftOut.length;
  list.querySelector('summary').textContent = `Left out: ${plural(leftOut.length, 'file')}`;
  list.querySelector('ul').replaceChildren(...leftOut.map((line) => element('li', {}, line)));
}
