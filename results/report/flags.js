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
  const more = lines.splice(kNotesShown);
  const summary = element('summary', {}, `${count(more.length)} more of this kind`);
  const folded = more.length ? element('details', {}, summary, ...more) : null;
  return element('li', {}, element('h3', {}, title), ...lines, folded);
}

// Does it scale as it should? A sentence per line that was run on several numbers of devices.
function answerItems(curves) {
  return curves.filter(({answer}) => answer).map(({label, answer}) => {
    const kind = {as_it_should: 'fine', not_judged: 'open', held_back: ''}[answer.kind];
    return element('li', {class: `${kind} answer`}, sentence(answer.text, curves.length > 1 ? label : ''));
  });
}

function showNotes(data) {
  const of = (kind) => data.notes.filter((note) => note.kind === kind);
  const kinds = Object.keys(kNoteTitles).filter((kind) => of(kind).length);
  const items = kinds.length ? kinds.map((kind) => notesItem(kNoteTitles[kind], of(kind))) :
                               [element('li', {class: 'fine'}, 'Nothing odd was found in these runs.')];
  byId('flag-list').replaceChildren(...answerItems(data.curves), ...items);
}

function showLeftOut(leftOut) {
  const list = byId('left-out');
  list.hidden = !leftOut.length;
  list.querySelector('summary').textContent = `Left out: ${plural(leftOut.length, 'file')}`;
  list.querySelector('ul').replaceChildren(...leftOut.map((line) => element('li', {}, line)));
}
