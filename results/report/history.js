// The page of a history: one line per configuration over commits or dates, with the gate's verdicts.

const data = JSON.parse(byId('data').textContent);
const series =
    data.lines.map((line, i) => ({curve: line, published: false, shown: true, style: {color: i, marker: 0}}));

// How the points of a verdict are drawn: a shape, filled or not.
const kVerdicts = {
  regression: {sign: '▼', pointStyle: 'triangle', rotation: 180, radius: 9, filled: true},
  improvement: {sign: '▲', pointStyle: 'triangle', rotation: 0, radius: 9, filled: true},
  'within noise': {sign: '●', pointStyle: 'circle', rotation: 0, radius: 5, filled: true},
  'too few runs': {sign: '○', pointStyle: 'circle', rotation: 0, radius: 5, filled: false},
  first: {sign: '□', pointStyle: 'rect', rotation: 0, radius: 6, filled: false},
};

const isChange = ({verdict}) => verdict === 'regression' || verdict === 'improvement';
const signed = (share) => (isNumber(share) ? `${share > 0 ? '+' : ''}${percent(share)}` : kMissing);
const dayOf = (point) => point.began?.slice(0, 10) ?? 'day not known';
const commitOf = (point) => point.commit ?? 'commit not known';
// Local times of the machine that measured, read as if they were UTC: no browser's zone moves them.
const secondsOf = (point) => (point.began ? Date.parse(`${point.began}Z`) / 1000 : 0);
const surroundingsOf = (point) => Object.entries(point.surroundings)
                                      .map(([name, [before, now]]) => `${name} ${before}, now ${now}`)
                                      .join('; ');

// One column for every commit, or day without one, of all lines, by its first start.
function columnsOf(lines) {
  const columns = new Map();
  for (const point of lines.flatMap(({points}) => points)) {
    const key = point.commit ?? dayOf(point);
    const known = columns.get(key);
    if (!known || secondsOf(point) < known.seconds)
      columns.set(key, {seconds: secondsOf(point), label: [point.commit?.slice(0, 8) ?? '', dayOf(point)]});
  }
  const sorted = [...columns].sort(([, a], [, b]) => a.seconds - b.seconds);
  return {labels: sorted.map(([, {label}]) => label), index: new Map(sorted.map(([key], i) => [key, i]))};
}
const columns = columnsOf(data.lines);

const placeOf = (point) => columns.index.get(point.commit ?? dayOf(point));

function historyDataset(one) {
  const line = one.curve;
  const colorOfLine = seriesColor(one.style.color);
  const looks = line.points.map(({verdict}) => kVerdicts[verdict]);
  return {
    ...lineOf(one),
    label: line.label,
    borderWidth: 1.5,
    data: line.points.map((point) => ({x: placeOf(point), y: point.median_images_per_second, point})),
    intervals: line.points.map(
        (point) => (point.runs.length > 1 ? [point.lowest_images_per_second, point.highest_images_per_second] :
                                            null)),
    pointStyle: looks.map(({pointStyle}) => pointStyle),
    pointRotation: looks.map(({rotation}) => rotation),
    pointRadius: looks.map(({radius}) => radius),
    pointHoverRadius: looks.map(({radius}) => radius + 2),
    pointBackgroundColor: looks.map(({filled}) => (filled ? colorOfLine : color('card'))),
    pointBorderColor: colorOfLine,
  };
}

function historyTable() {
  const speed = {unit: 'images/s', text: plain};
  const points = data.lines.flatMap(({label, points}) => points.map((point) => ({label, ...point})));
  return tableOf('Throughput by configuration and commit', points, [
    {name: 'Configuration', value: ({label}) => label}, {name: 'Date', short: true, value: dayOf},
    {name: 'Commit', short: true, value: commitOf}, {name: 'Runs', text: count, value: ({runs}) => runs.length},
    {name: 'Median', ...speed, value: (point) => point.median_images_per_second},
    {name: 'Smallest', ...speed, value: (point) => point.lowest_images_per_second},
    {name: 'Largest', ...speed, value: (point) => point.highest_images_per_second},
    {name: 'Change', text: signed, value: ({change}) => change},
    {name: 'Verdict', short: true, value: ({verdict}) => verdict},
    {name: 'Against the runs before', value: ({finding}) => finding},
    {name: 'Since the point before', value: surroundingsOf}
  ]);
}

function historyTooltip({dataset, raw: {point}}) {
  const range = `${plain(point.lowest_images_per_second)} to ${plain(point.highest_images_per_second)}`;
  return [
    dataset.label, `${commitOf(point)}, ${point.began?.replace('T', ' ') ?? dayOf(point)}`,
    `${plain(point.median_images_per_second)} images/s; ${plural(point.runs.length, 'run')}, ${range}`,
    `${point.verdict}: ${point.finding}`, surroundingsOf(point)
  ].filter(Boolean);
}

function historyFigure() {
  const datasets = series.filter(({shown}) => shown).map(historyDataset);
  const values =
      datasets.flatMap(({data: points, intervals}) => [...points.map(({y}) => y), ...intervals.flat()])
          .filter(isNumber);
  const y = Math.max(...values) > 8 * Math.min(...values) ?
      logAxis('images/s', values, (value) => plain(value, 1)) :
      axis('images/s', {grace: '8%', ticks: {callback: (value) => plain(value)}});
  const x = axis('commit and day of its first run', {
    type: 'linear',
    min: -0.5,
    max: columns.labels.length - 0.5,
    ...ticksAt([...columns.labels.keys()]),
    ticks: {callback: (value) => columns.labels[value], maxRotation: 0},
  });
  return {
    label: `Lines of throughput over commits: ${data.lines.map(({label}) => label).join('; ')}.`,
    table: historyTable(),
    config: chartConfig(
        'line', {datasets}, {x, y}, {title: () => '', label: historyTooltip},
        {interaction: {mode: 'nearest', intersect: false}}),
  };
}

const showHistory = () => showFigure('history', historyFigure());

function changeItem({line, point}) {
  const subject = `${commitOf(point)}, ${dayOf(point)} · ${line.label}`;
  const since = surroundingsOf(point);
  return element(
      'li', point.verdict === 'regression' ? {} : {class: 'fine'},
      element('h3', {}, `${kVerdicts[point.verdict].sign} ${point.verdict}`),
      sentence(point.finding, subject),
      since ? element('p', {}, `Since the point before: ${since}`) : null);
}

// The latest first.
function showChanges() {
  const kShown = 6;
  const changes = data.lines.flatMap((line) => line.points.filter(isChange).map((point) => ({line, point})))
                      .sort((a, b) => secondsOf(b.point) - secondsOf(a.point));
  const items = changes.map(changeItem);
  const judged = data.lines.some(({points}) => points.some(({p}) => isNumber(p)));
  const none = judged ?
      'No regression and no improvement: all points are within the noise of the runs before.' :
      'Nothing can be judged yet: the gate needs 3 runs of a point and 3 before it.';
  if (!items.length) items.push(element('li', {class: 'fine'}, none));
  const list = byId('flag-list');
  list.replaceChildren(...items.slice(0, kShown));
  if (items.length > kShown)
    list.append(element(
        'li', {class: 'fine'},
        element(
            'details', {}, element('summary', {}, `${count(items.length - kShown)} earlier ones`),
            element('ul', {class: 'flags'}, ...items.slice(kShown)))));
  showLeftOut(data.left_out);
}

function showFrame() {
  const points = data.lines.reduce((sum, line) => sum + line.points.length, 0);
  byId('made').textContent = [
    data.created, data.made_by, plural(data.lines.length, 'configuration'), plural(points, 'point')
  ].filter(Boolean).join(' · ');
  byId('history-rule').textContent = `Verdicts are the gate's against the ${
      data.baseline_last} latest runs before: a change is one if it is significant (${
      percent(data.significance, 0)}, one-sided) and above ${percent(data.max_regression)}.`;
  document.querySelector('#history .legend')
      .replaceChildren(
          ...Object.entries(kVerdicts).map(([name, {sign}]) => element('li', {}, `${sign} ${name}`)));
}

showFrame();
showChanges();
setUpSeries(series, showHistory);
showHistory();
// For tests and for the curious: the data, and the charts by name.
window.plumbline = {
  data,
  charts,
  ready: true
};
