// The verdict on scaling and what is odd about the runs, at the top of the page.

// The worst first.
const kFlagTitles = {
  failed_check: 'Failed checks',
  slow_rank: 'A rank for which the others wait',
  throttling: 'GPUs held back',
  warmup_not_over: 'Warm-up that was not over',
  drift: 'Drift',
  two_modes: 'Two speeds',
  outlier_run: 'Runs far off',
  outliers: 'Steps far off',
  note: 'Notes',
};
const kFlagsShown = 3;

// Sentences of one kind together; many are folded away.
function sentencesItem(title, sentences) {
  const lines = sentences.map(
      ({sentence, subject}) => element(
          'p', {}, element('span', {class: 'sentence'}, sentence),
          element('span', {class: 'subject'}, subject)));
  const item = element('li', {}, element('h3', {}, title), ...lines.slice(0, kFlagsShown));
  const more = lines.slice(kFlagsShown);
  if (more.length)
    item.append(
        element('details', {}, element('summary', {}, `${count(more.length)} more of this kind`), ...more));
  return item;
}

// Does it scale as it should? A sentence per line that was run on several numbers of devices.
function showAnswers(data) {
  const answered = data.curves.filter(({answer}) => answer);
  document.getElementById('answers').hidden = !answered.length;
  document.getElementById('answer-list').replaceChildren(...answered.map(({label, answer}) => {
    const lines = [element('span', {class: 'sentence'}, answer.sentence)];
    if (data.curves.length > 1) lines.push(element('span', {class: 'subject'}, label));
    const kind = {as_it_should: 'fine', not_judged: 'open', held_back: ''}[answer.kind];
    return element('li', kind ? {class: kind} : {}, element('p', {}, ...lines));
  }));
}

// What doesn't fit the prediction.
function verdictsItem(data) {
  const verdicts = data.curves.flatMap(
      ({label, verdicts}) => (verdicts ?? []).map((sentence) => ({sentence, subject: label})));
  return verdicts.length ? sentencesItem('Against the prediction', verdicts) : null;
}

// What more devices cost, the largest loss first.
function scalingItem(data) {
  const losses =
      [...data.scaling].sort((a, b) => (a.noise === 'within') - (b.noise === 'within') || b.lost - a.lost);
  return sentencesItem('Scaling', losses.map(({text, curve}) => ({sentence: text, subject: curve})));
}

function showFlags(data) {
  const kinds = Object.keys(kFlagTitles).filter((kind) => data.flags.some((flag) => flag.kind === kind));
  const fine = data.runs.some((run) => run.steps) ?
      'Nothing odd was found: no drift, no outliers, no rank or GPU behind the others.' :
      'Nothing odd was found between the runs; what happened within one, logs don\'t tell.';
  const items = kinds.length ?
      kinds.map((kind) => sentencesItem(kFlagTitles[kind], data.flags.filter((flag) => flag.kind === kind))) :
      [element('li', {class: 'fine'}, fine)];
  const against = verdictsItem(data);
  if (against) items.unshift(against);
  if (data.scaling.length) items.unshift(scalingItem(data));
  document.getElementById('flag-list').replaceChildren(...items);
}
