// The page of a history: one line per configuration over commits or dates, with the gate's verdicts.

const data = JSON.parse(byId('data').textContent);
const series = data.lines.map((line, i) => ({curve: line, index: i, shown: true}));

// The row's class and the color of the larger point, for verdicts that stand out.
const kChanges = {
  regression: {row: 'bad', ink: 'bad-ink'},
  improvement: {row: 'fine', ink: 'good-ink'}
};

const dayOf = (point) => point.began?.slice(0, 10) ?? 'day not known';
const placeOf = (point) => point.commit?.slice(0, 8) ?? dayOf(point);

// Commits, or days without one, in the order of their first starts.
const byStart = (a, b) => (a.began ?? '').localeCompare(b.began ?? '');
const places = [...new Set(data.lines.flatMap(({points}) => points).sort(byStart).map(placeOf))];

function historyDataset(one) {
  const {label, points} = one.curve;
  const line = lineOf(one);
  const inks = points.map(({verdict}) => (kChanges[verdict] ? color(kChanges[verdict].ink) : line.borderColor));
  return {
    ...line,
    label,
    data: points.map((point) => ({x: placeOf(point), y: point.median_images_per_second, point})),
    intervals: points.map((point) => [point.lowest_images_per_second, point.highest_images_per_second]),
    pointRadius: points.map(({verdict}) => (kChanges[verdict] ? 9 : 5)),
    pointBackgroundColor: inks,
    pointBorderColor: inks,
  };
}

// The latest points first.
function historyTable() {
  const speed = {unit: 'images/s', text: plain};
  const points = data.lines.flatMap(({label, points}) => points.map((point) => ({label, ...point})))
                     .sort((a, b) => byStart(b, a));
  const columns = [
    {name: 'Configuration', value: ({label}) => label}, {name: 'Date', short: true, value: dayOf},
    {name: 'Commit', short: true, value: ({commit}) => commit ?? 'not known'},
    {name: 'Runs', text: count, value: ({runs}) => runs.length},
    {name: 'Median', ...speed, value: (point) => point.median_images_per_second},
    {name: 'Smallest', ...speed, value: (point) => point.lowest_images_per_second},
    {name: 'Largest', ...speed, value: (point) => point.highest_images_per_second},
    {name: 'Verdict', short: true, value: ({verdict}) => verdict},
    {name: 'Against the runs before', value: ({finding}) => finding}
  ];
  const attributes = points.map(({verdict}) => (kChanges[verdict] ? {class: kChanges[verdict].row} : {}));
  return tableOf('Throughput by configuration and commit', points, columns, {open: true, attributes});
}

function historyFigure() {
  const label = ({dataset, raw: {point}}) =>
      [dataset.label, `${plural(point.runs.length, 'run')}, ${plain(point.median_images_per_second)} images/s`,
       `${point.verdict}: ${point.finding}`];
  const shown = series.filter((one) => one.shown);
  const points = shown.flatMap(({curve}) => curve.points);
  const y = axis('images/s', {
    grace: '8%',
    suggestedMin: Math.min(...points.map((point) => point.lowest_images_per_second)),
    suggestedMax: Math.max(...points.map((point) => point.highest_images_per_second)),
  });
  return {
    label: `Lines of throughput over commits: ${data.lines.map((line) => line.label).join('; ')}.`,
    table: historyTable(),
    config: chartConfig(
        'line', {datasets: shown.map(historyDataset)},
        {x: axis('commit, or day', {type: 'category', labels: places, offset: true}), y},
        {title: ([{raw: {point}}]) => `${placeOf(point)}, ${point.began ?? dayOf(point)}`, label},
        {interaction: {mode: 'nearest', intersect: false}}),
  };
}

const showHistory = () => showFigure('history', historyFigure());

byId('made').textContent = [data.created, data.made_by].filter(Boolean).join(' · ');
byId('history-rule').textContent = `Verdicts are the gate's against the ${
    data.baseline_last} latest runs before: a change is one if it is significant (${
    percent(data.significance, 0)}, one-sided) and above ${percent(data.max_regression)}.`;
showLeftOut(data.left_out);
setUpSeries(series, showHistory);
showHistory();
// For tests and for the curious: the data, and the charts by name.
window.plumbline = {
  data,
  charts,
  ready: true
};
