// What is odd about the runs, at the top of the page.

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

// All flags of one kind together; many are folded away.
function flagItem(data, kind) {
  const flags = data.flags.filter((flag) => flag.kind === kind);
  const lines = flags.map(
      (flag) => element(
          'p', {}, element('span', {class: 'sentence'}, flag.sentence),
          element('span', {class: 'subject'}, flag.subject)));
  const item = element('li', {}, element('h3', {}, kFlagTitles[kind]), ...lines.slice(0, kFlagsShown));
  const more = lines.slice(kFlagsShown);
  if (more.length)
    item.append(
        element('details', {}, element('summary', {}, `${count(more.length)} more of this kind`), ...more));
  return item;
}

function showFlags(data) {
  const kinds = Object.keys(kFlagTitles).filter((kind) => data.flags.some((flag) => flag.kind === kind));
  const fine = data.runs.some((run) => run.steps) ?
      'Nothing odd was found: no drift, no outliers, no rank or GPU behind the others.' :
      'Nothing odd was found between the runs; what happened within one, logs don\'t tell.';
  const items =
      kinds.length ? kinds.map((kind) => flagItem(data, kind)) : [element('li', {class: 'fine'}, fine)];
  document.getElementById('flag-list').replaceChildren(...items);
}
